-- Notes how far the log was at a change, unless a later position is there: notes may overtake.
--
-- KEYS[1]  where the position of a caller is
-- ARGV     the position; the one of a change that could not be placed; for how many seconds

local before = redis.call('GET', KEYS[1])
if not before or before == ARGV[2] or tonumber(before) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[3])
end
