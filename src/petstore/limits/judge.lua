-- The limiter of decide.py as one atomic script. It judges the requests of several keys or addresses.
--
-- DEFAULTS  the fields of State in decide.py; redis.py puts them before this text
-- KEYS      where the state of each request is, in MessagePack, without what is as in DEFAULTS
-- ARGV      a JudgeCall of redis.py for each, in MessagePack; tests add ``now``, to replace
--           the server's clock
-- Returns for each the verdict, the time, 1 if a ban begins, and the state after it in MessagePack.
-- With no state there and none in the call it is nil, and nothing is done. A look is never refused.

local AS_DEFAULT = { __index = DEFAULTS }
local SECOND, MINUTE, DAY = 1000, 60000, 86400000

local time = redis.call('TIME')
local server_now = time[1] * SECOND + math.floor(time[2] / 1000)
local call, rules, now, today  -- of the request that is judged

local function heed_unban(state)
  if call.unbanned_at > state.unbanned_at then
    state.refused_since, state.refused_at, state.struck_since = nil, nil, nil
    state.banned_at, state.banned_until, state.strikes, state.ban_level = nil, nil, nil, nil
    state.unbanned_at, state.used_at = call.unbanned_at, now
  end
end

-- Without this, a clock that ran far ahead for a moment would make clients wait as long.
local function correct_clock_jump(state)
  if state.minute_started > now + MINUTE or state.day > today + 1 then
    state.minute_started = math.min(state.minute_started, now)
    state.day = math.min(state.day, today)
  end
end

local function refuse(state)
  if now - state.refused_at >= rules.window then
    state.refused_since = now
  end
  if now - state.refused_since > rules.grace then
    if now - state.struck_since >= rules.window then
      state.strikes, state.struck_since = 0, now
    end
    state.strikes = state.strikes + 1
  end
  state.refused_at, state.used_at = now, now
  if state.strikes < call.threshold then
    return 'limited'
  end
  local clean = math.max(0, now - state.banned_until)
  local level = math.max(0, state.ban_level - math.floor(clean / rules.decay))
  state.banned_at = now
  state.banned_until = now + math.min(rules.duration * 2 ^ level, rules.max_duration)
  state.ban_level = math.min(level + 1, call.last_level)
  state.strikes, state.struck_since = nil, nil
  return 'banned', true
end

local function take(state)
  correct_clock_jump(state)
  if now < state.banned_until then
    return 'banned'
  end
  local started, used, day, day_used =
    state.minute_started, state.minute_used, state.day, state.day_used
  if now >= started + MINUTE then
    started, used = now, 0
  end
  if today > day then
    day, day_used = today, 0
  end
  if used >= call.per_minute or day_used >= call.per_day then
    return refuse(state)
  end
  state.minute_started, state.minute_used = started, used + 1
  state.day, state.day_used = day, day_used + 1
  state.refused_since, state.refused_at, state.used_at = nil, nil, now
  return 'admitted'
end

-- So many requests to the day alone, all of them or none; a refusal is no strike, and gives back
-- to the day the request that was admitted with these.
local function charge(state)
  correct_clock_jump(state)
  if now < state.banned_until then
    return 'banned'
  end
  local day, day_used = state.day, state.day_used
  if today > day then
    day, day_used = today, 0
  end
  day_used = day_used + (call.requests or 0)
  state.used_at = now
  if day_used > call.per_day then
    if state.day == call.day then
      state.day_used = state.day_used - 1
    end
    return 'limited'
  end
  state.day, state.day_used = day, day_used
  return 'admitted'
end

-- Another program may have written anything: only whole numbers count, and times before 6429.
local function unpacked(stored)
  local is_packed, fields = pcall(cmsgpack.unpack, stored)
  if not is_packed or type(fields) ~= 'table' then
    return nil
  end
  local state = {}
  for name, number in pairs(fields) do
    local is_valid = type(number) == 'number' and number % 1 == 0 and math.abs(number) < 2 ^ 47
    state[name] = DEFAULTS[name] and is_valid and number or nil
  end
  return state
end

local function judge(key)
  local stored = redis.pcall('GET', key)
  if type(stored) == 'table' and not stored.err:find('WRONGTYPE') then
    error(stored.err)  -- such as a missing right: otherwise each request would be the first
  end
  local state = unpacked(stored) or call.state
  if not state then
    return false  -- a nil would end the list of results
  end
  setmetatable(state, AS_DEFAULT)

  heed_unban(state)
  local verdict, begins_ban = 'admitted', false
  if call.mode == 'take' then
    verdict, begins_ban = take(state)
  elseif call.mode == 'charge' then
    verdict = charge(state)
  end
  if now - state.used_at >= MINUTE then  -- after a look, or banned: to the minute
    state.used_at = now
  end

  local packed = cmsgpack.pack(state)
  if packed ~= stored and (stored or call.mode ~= 'look') then  -- a look adds no key
    redis.call('SET', key, packed, 'PX', call.expires_after)
  end
  return { verdict, now, begins_ban and 1 or 0, packed }
end

local judgements = {}
for index, key in ipairs(KEYS) do
  call = cmsgpack.unpack(ARGV[index])
  rules, now = call.rules, call.now or server_now
  today = math.floor(now / DAY)
  judgements[index] = judge(key)
end
return judgements
