-- Announces a process and returns how many there are, and the server's time in ms.
--
-- KEYS[1]  a sorted set of the processes, each with the second of its latest heartbeat
-- ARGV     the process, and the seconds after which a silent one is gone

local time = redis.call('TIME')
local now = tonumber(time[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return { redis.call('ZCARD', KEYS[1]), now * 1000 + math.floor(time[2] / 1000) }
