-- Admit a request if both windows have room, and count it in both: KEYS[1] is the hash of a caller,
-- ARGV the limits a minute and a day. Returns 1 or 0, and the usage. Times are in ms, by Redis.
local MINUTE, DAY = 60000, 86400000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.call('HMGET', KEYS[1], 'started', 'used', 'day', 'day_used')
local started, used = tonumber(stored[1] or 0), tonumber(stored[2] or 0)
local day, day_used = tonumber(stored[3] or 0), tonumber(stored[4] or 0)
if now >= started + MINUTE then
  started, used = now, 0
end
local today = math.floor(now / DAY)
if today > day then
  day, day_used = today, 0
end
local admitted = 0
if used < tonumber(ARGV[1]) and day_used < tonumber(ARGV[2]) then
  admitted, used, day_used = 1, used + 1, day_used + 1
  redis.call('HSET', KEYS[1], 'started', started, 'used', used, 'day', day, 'day_used', day_used)
  redis.call('PEXPIRE', KEYS[1], DAY + MINUTE)
end
return { admitted, started, used, day, day_used }
