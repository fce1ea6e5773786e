-- Records the LSN of a key's last write, unless a higher one is there: writes may overtake.
--
-- KEYS[1]  the LSN of the API key
-- ARGV     the LSN; the LSN that stands for an unknown one; the expiry in seconds

local before = redis.call('GET', KEYS[1])
if not before or before == ARGV[2] or tonumber(before) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[3])
end
