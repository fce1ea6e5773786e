-- The limiter of decide.py as one atomic script, on one hash: the state of a key or of an address.
--
-- KEYS[1]  the hash
-- ARGV     "take" or "look"; the time in ms, or "" for the server's clock; limits a minute and a
--          day; pardoned at; strikes that ban, innocence, window of strikes, first ban, longest
--          ban, forgiven after, last level, time to live of the hash in ms; and the state to begin
--          with where there is no hash
-- Returns the verdict, the time and the state after it. Where there is neither hash nor state,
-- returns "unknown" and does nothing. A look is never refused.

local NEVER, NEVER_IN_DIGITS = -4611686018427387904, '-4611686018427387904'
local SECOND, MINUTE, DAY = 1000, 60000, 86400000
local FIELDS = {
  'minute_started', 'minute_used', 'day', 'day_used', 'refused_since', 'refused_at', 'strikes',
  'struck_since', 'banned_at', 'banned_until', 'ban_level', 'used_at', 'pardoned_at',
}
local USED_AT = 12  -- a field that every hash has
local DEFAULTS = { NEVER, 0, 0, 0, NEVER, NEVER, 0, NEVER, NEVER, NEVER, 0, NEVER, NEVER }
local LAST_ARGUMENT = 13

local mode = ARGV[1]
local now = tonumber(ARGV[2])
if now == nil then
  local time = redis.call('TIME')
  now = time[1] * SECOND + math.floor(time[2] / 1000)
end
local per_minute, per_day, pardoned_at = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local threshold, innocence, window = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local first, longest, forgiven_after = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local last_level, time_to_live = tonumber(ARGV[12]), ARGV[LAST_ARGUMENT]

local function heed_pardon(state)
  if pardoned_at > state.pardoned_at then
    state.refused_since, state.refused_at, state.struck_since = NEVER, NEVER, NEVER
    state.banned_at, state.banned_until = NEVER, NEVER
    state.strikes, state.ban_level = 0, 0
    state.pardoned_at, state.used_at = pardoned_at, now
  end
end

-- A clock that was far ahead for a moment would else have callers wait as long.
local function bring_in_reach(state)
  local today = math.floor(now / DAY)
  if state.minute_started > now + MINUTE or state.day > today + 1 then
    state.minute_started = math.min(state.minute_started, now)
    state.day = math.min(state.day, today)
  end
end

local function refuse(state)
  if now - state.refused_at >= window then
    state.refused_since = now
  end
  if now - state.refused_since > innocence then
    if now - state.struck_since >= window then
      state.strikes, state.struck_since = 0, now
    end
    state.strikes = state.strikes + 1
  end
  state.refused_at, state.used_at = now, now
  if state.strikes >= threshold then
    local clean = math.max(0, now - state.banned_until)
    local level = math.max(0, state.ban_level - math.floor(clean / forgiven_after))
    state.banned_at = now
    state.banned_until = now + math.min(first * 2 ^ level, longest)
    state.ban_level = math.min(level + 1, last_level)
    state.strikes, state.struck_since = 0, NEVER
  end
end

local function take(state)
  local started, used, day, day_used =
    state.minute_started, state.minute_used, state.day, state.day_used
  if now >= started + MINUTE then
    started, used = now, 0
  end
  local today = math.floor(now / DAY)
  if today > day then
    day, day_used = today, 0
  end
  if used < per_minute and day_used < per_day then
    state.minute_started, state.minute_used = started, used + 1
    state.day, state.day_used = day, day_used + 1
    state.refused_since, state.refused_at, state.used_at = NEVER, NEVER, now
    return 'admitted'
  end
  refuse(state)
  return now < state.banned_until and 'banned' or 'limited'
end

local stored = redis.call('HMGET', KEYS[1], unpack(FIELDS))
local is_there = stored[USED_AT]
if not is_there and #ARGV == LAST_ARGUMENT then
  return { 'unknown' }
end

local state, before = {}, {}
for index, field in ipairs(FIELDS) do
  local digits = stored[index] or not is_there and ARGV[LAST_ARGUMENT + index]
  before[index] = tonumber(digits or DEFAULTS[index])
  state[field] = before[index]
end

heed_pardon(state)
local verdict = 'admitted'
if mode == 'take' then
  bring_in_reach(state)
  verdict = now < state.banned_until and 'banned' or take(state)
end
if now - state.used_at >= MINUTE then  -- looked at, or banned: kept to the minute
  state.used_at = now
end

local reply, changes = { verdict, now }, {}
for index, field in ipairs(FIELDS) do
  local number = state[field]
  reply[2 + index] = number
  if number ~= (is_there and before[index] or DEFAULTS[index]) then
    changes[#changes + 1] = field
    changes[#changes + 1] = number == NEVER and NEVER_IN_DIGITS or number
  end
end
-- A look makes no hash: who only looks is not there.
if #changes > 0 and (is_there or mode == 'take') then
  redis.call('HSET', KEYS[1], unpack(changes))
  redis.call('PEXPIRE', KEYS[1], time_to_live)
end
return reply
