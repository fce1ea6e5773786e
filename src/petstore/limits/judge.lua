-- The limiter of decide.py as one atomic script. It judges the requests of several keys or addresses.
--
-- DEFAULTS  the fields of State in decide.py; redis.py puts them before this text
-- KEYS      a hash for each request; it has the fields of its state that differ from their defaults
-- ARGV      a JudgeCall of redis.py for each, in MessagePack; tests add ``now``, to replace
--           the server's clock
-- Returns a Judgement of redis.py for each, in MessagePack. Without a hash and without
-- ``call.state`` it is nil, and nothing is done. A look is never refused.

local NEVER = DEFAULTS.banned_at
local SECOND, MINUTE, DAY = 1000, 60000, 86400000

local time = redis.call('TIME')
local server_now = time[1] * SECOND + math.floor(time[2] / 1000)
local call, rules, now, today  -- of the request that is judged

local function heed_unban(state)
  if call.unbanned_at > state.unbanned_at then
    state.refused_since, state.refused_at, state.struck_since = NEVER, NEVER, NEVER
    state.banned_at, state.banned_until = NEVER, NEVER
    state.strikes, state.ban_level = 0, 0
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
  state.strikes, state.struck_since = 0, NEVER
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
  state.refused_since, state.refused_at, state.used_at = NEVER, NEVER, now
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

local function judge(key)
  local stored = redis.pcall('HGETALL', key)
  if stored.err then  -- somebody else wrote another type: it counts as none, too
    redis.call('DEL', key)
    stored = {}
  end
  local exists = #stored > 0
  if not exists and not call.state then
    return false  -- a nil would end the list of results
  end
  local before = setmetatable({}, { __index = DEFAULTS })
  for index = 1, #stored, 2 do
    local name, number = stored[index], tonumber(stored[index + 1])
    -- Somebody else may have written another number, such as 2.5: it counts as none.
    if DEFAULTS[name] and number and number % 1 == 0 and math.abs(number) < 2 ^ 53 then
      before[name] = number
    end
  end
  local state = setmetatable(not exists and call.state or {}, { __index = before })

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

  local changes = {}
  for name, number in pairs(state) do
    if number ~= before[name] then
      changes[#changes + 1] = name
      changes[#changes + 1] = string.format('%.0f', number)
    end
  end
  -- A look makes no hash.
  if #changes > 0 and (exists or call.mode ~= 'look') then
    redis.call('HSET', key, unpack(changes))
    redis.call('PEXPIRE', key, call.expires_after)
  end
  for name, number in pairs(before) do
    state[name] = rawget(state, name) or number
  end
  return cmsgpack.pack({ verdict = verdict, now = now, state = state, begins_ban = begins_ban })
end

local judgements = {}
for index, key in ipairs(KEYS) do
  call = cmsgpack.unpack(ARGV[index])
  rules, now = call.rules, call.now or server_now
  today = math.floor(now / DAY)
  judgements[index] = judge(key)
end
return judgements
