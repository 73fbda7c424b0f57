// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rewatchInterval is the pause before a watch that failed or did not last is
// opened again. The API server ends each after some minutes.
const rewatchInterval = 5 * time.Second

// watch tells of every change to one webhook configuration, so that a caBundle
// that someone wiped is back at once. Where it may not watch, Options.Interval
// is what remains.
func (c *Certificates) watch(ctx context.Context, name string, list client.ObjectList, changed chan<- struct{}) {
	refused := false
	for ctx.Err() == nil {
		began := time.Now()
		err := c.watchOnce(ctx, name, list, changed)
		if err != nil && !refused && ctx.Err() == nil {
			c.log.Error(err, "Watching a webhook configuration failed; it is looked at from time to time", "configuration", name, "interval", c.options.Interval)
		}
		refused = err != nil
		if refused || time.Since(began) < rewatchInterval {
			pause(ctx, rewatchInterval)
		}
	}
}

// watchOnce lasts until the watch ends. It begins with what is there, so that
// nothing is missed between two watches.
func (c *Certificates) watchOnce(ctx context.Context, name string, list client.ObjectList, changed chan<- struct{}) error {
	w, err := c.client.Watch(ctx, list, client.MatchingFields{"metadata.name": name})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, more := <-w.ResultChan():
			if !more {
				return nil
			}
		}
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	}
}
