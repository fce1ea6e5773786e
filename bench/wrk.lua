-- Sends the requests of a file, separated by zero bytes, one after the other and again from the
-- first. The byte 1 in a request is replaced by ids that no other request of the run has. Prints
-- one line of JSON; latencies are in microseconds.

local heads, tails, last = {}, {}, 0
local run, digits, high, low = "", {}, 0, 0

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  for one in file:read("*a"):gmatch("%Z+") do
    local head, tail = one:match("^([^\1]*)\1(.*)$")
    heads[#heads + 1], tails[#tails + 1] = head or one, tail or false
  end
  file:close()
  run = arguments[2]
  for number = 0, 65535 do
    digits[number] = string.format("%04x", number)
  end
end

-- Tables of digits, because string.format for each request would slow the load down.
function request()
  last = last % #heads + 1
  local head, tail = heads[last], tails[last]
  if not tail then
    return head
  end
  low = low + 1
  if low > 65535 then
    high, low = high + 1, 0
  end
  local number = digits[high] .. digits[low]
  return head .. "X-Request-Id: " .. run .. number .. "\r\ntraceparent: 00-" .. run
    .. number .. "-00000000" .. number .. "-01\r\n" .. tail
end

function done(summary, latency)
  local failed = summary.errors
  print(string.format(
    '{"responses":%d,"microseconds":%d,"p50":%d,"p99":%d,"p999":%d,"errors":%d}',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    failed.connect + failed.read + failed.write + failed.status + failed.timeout
  ))
end
