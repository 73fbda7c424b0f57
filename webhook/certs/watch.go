// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rewatchInterval is the pause before a watch that ended is opened again. The
// API server ends each after some minutes.
const rewatchInterval = 5 * time.Second

// watch tells of every change to one webhook configuration, so that a caBundle
// that someone wiped is back at once. Where it may not watch, Options.Interval
// is what remains.
func (c *Certificates) watch(ctx context.Context, name string, list client.ObjectList, changed chan<- struct{}) {
	refused := false
	for ctx.Err() == nil {
		err := c.watchOnce(ctx, name, list, changed)
		if err != nil && !refused && ctx.Err() == nil {
			c.log.Error(err, "Watching a webhook configuration failed; it is looked at from time to time", "configuration", name, "interval", c.options.Interval)
		}
		refused = err != nil
		select {
		case <-ctx.Done():
		case <-time.After(rewatchInterval):
		}
	}
}

func (c *Certificates) watchOnce(ctx context.Context, name string, list client.ObjectList, changed chan<- struct{}) error {
	w, err := c.client.Watch(ctx, list, client.MatchingFields{"metadata.name": name})
	if err != nil {
		return err
	}
	defer w.Stop()
	for range w.ResultChan() {
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	}
	return nil
}
