package main

import (
	"math"
	"time"
)

const (
	minute    = int64(time.Minute / time.Millisecond)
	day       = 24 * 60 * minute
	unlimited = math.MaxInt32 // what a window without a limit reports
)

// limits are the requests a minute and a day that a caller may make.
type limits struct{ perMinute, perDay int64 }

// window is what a caller is told of its limit; reset is in seconds since the epoch.
type window struct{ limit, remaining, reset int64 }

// usage is what a caller has used of its minute, which starts with its first request, and of its
// day, which starts at 00:00 UTC. Times are milliseconds since the epoch.
type usage struct{ minuteStarted, minuteUsed, day, dayUsed int64 }

// limiter counts the requests of every caller, exactly.
type limiter interface {
	// take admits a request if both windows have room, and counts it in both; a rejected one costs
	// nothing. It returns the window to report.
	take(caller string, granted limits, now int64) (window, bool, error)
}

// newLimiter counts in the Redis at a URL, or in memory without one.
func newLimiter(redisURL string) limiter {
	if redisURL != "" {
		return newRedisLimiter(redisURL)
	}
	return newMemoryLimiter()
}

// window returns the window with fewer requests left, on a tie the one that resets later.
func (u *usage) window(granted limits) window {
	short := describe(granted.perMinute, u.minuteUsed, u.minuteStarted+minute)
	long := describe(granted.perDay, u.dayUsed, (u.day+1)*day)
	if long.remaining < short.remaining || long.remaining == short.remaining && long.reset > short.reset {
		return long
	}
	return short
}

func describe(limit, used, end int64) window {
	reset := (end + 999) / 1000
	if limit == unlimited {
		return window{limit, unlimited, reset}
	}
	remaining := limit - used
	if remaining < 0 {
		remaining = 0
	}
	return window{limit, remaining, reset}
}
