-- Sends the requests in a file, which zero bytes part, one after the other and again from the first,
-- and prints what came of it as a line of JSON. Latencies are in microseconds.

local requests, last = {}, 0

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  for one in file:read("*a"):gmatch("%Z+") do
    requests[#requests + 1] = one
  end
  file:close()
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary, latency)
  local failed = summary.errors
  print(string.format(
    '{"answers":%d,"microseconds":%d,"p50":%d,"p99":%d,"p999":%d,"errors":%d}',
    summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9),
    failed.connect + failed.read + failed.write + failed.status + failed.timeout
  ))
end
