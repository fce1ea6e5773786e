package main

import (
	"sync"
	"time"
)

// memoryLimiter counts in this process.
type memoryLimiter struct {
	mutex   sync.Mutex
	callers map[string]*usage
}

func newMemoryLimiter() *memoryLimiter {
	l := &memoryLimiter{callers: map[string]*usage{}}
	go func() {
		for range time.Tick(time.Minute) {
			l.forget(time.Now().UnixMilli())
		}
	}()
	return l
}

func (l *memoryLimiter) take(caller string, granted limits, now int64) (window, bool, error) {
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
	return used.window(granted), admitted, nil
}

// forget drops the callers whose windows are over.
func (l *memoryLimiter) forget(now int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for caller, used := range l.callers {
		if now >= used.minuteStarted+minute && now/day > used.day {
			delete(l.callers, caller)
		}
	}
}
