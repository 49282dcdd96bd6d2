package jobtest

import "context"

// Countdown returns a context that is done once its Err has been asked for so many times.
func Countdown(ctx context.Context, times int) context.Context { return &countdown{ctx, times} }

type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left == 0 {
		return context.Canceled
	}
	c.left--
	return nil
}
