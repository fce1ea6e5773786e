package main

import (
	_ "embed"
	"time"

	"github.com/gomodule/redigo/redis"
)

const redisConnections = 32

//go:embed take.lua
var takeSource string

var takeScript = redis.NewScript(1, takeSource)

// redisLimiter counts in Redis, in one round trip a request.
type redisLimiter struct{ pool redis.Pool }

func newRedisLimiter(url string) *redisLimiter {
	const timeout = 2 * time.Second
	return &redisLimiter{redis.Pool{
		MaxIdle:   redisConnections,
		MaxActive: redisConnections,
		Wait:      true,
		Dial: func() (redis.Conn, error) {
			return redis.DialURL(url, redis.DialConnectTimeout(timeout),
				redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
		},
	}}
}

// take leaves the time to Redis, so that all processes share one clock.
func (l *redisLimiter) take(caller string, granted limits, _ int64) (window, bool, error) {
	connection := l.pool.Get()
	defer connection.Close()
	reply, err := redis.Int64s(
		takeScript.Do(connection, "go:"+caller, granted.perMinute, granted.perDay))
	if err != nil {
		return window{}, false, err
	}
	used := usage{reply[1], reply[2], reply[3], reply[4]}
	return used.window(granted), reply[0] == 1, nil
}
