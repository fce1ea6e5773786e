package main

import (
	"math"
	"sync"
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
type limiter struct {
	mutex   sync.Mutex
	callers map[string]*usage
}

func newLimiter() *limiter {
	l := &limiter{callers: map[string]*usage{}}
	go func() {
		for range time.Tick(time.Minute) {
			l.forget(time.Now().UnixMilli())
		}
	}()
	return l
}

// take admits a request if both windows have room, and counts it in both; one that is refused
// costs nothing. It returns the window with fewer requests left, on a tie the later one.
func (l *limiter) take(caller string, granted limits, now int64) (window, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	used := l.callers[caller]
	if used == nil {
		used = &usage{}
		l.callers[caller] = used
	}
	if now >= used.minuteStarted+minute {
		used.minuteStarted, used.minuteUsed = now, 0
	}
	if today := now / day; today > used.day {
		used.day, used.dayUsed = today, 0
	}
	admitted := used.minuteUsed < granted.perMinute && used.dayUsed < granted.perDay
	if admitted {
		used.minuteUsed++
		used.dayUsed++
	}
	short := describe(granted.perMinute, used.minuteUsed, used.minuteStarted+minute)
	long := describe(granted.perDay, used.dayUsed, (used.day+1)*day)
	if long.remaining < short.remaining || long.remaining == short.remaining && long.reset > short.reset {
		return long, admitted
	}
	return short, admitted
}

// forget drops the callers whose windows are over.
func (l *limiter) forget(now int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for caller, used := range l.callers {
		if now >= used.minuteStarted+minute && now/day > used.day {
			delete(l.callers, caller)
		}
	}
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
