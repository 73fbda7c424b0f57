// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"sync"

	"github.com/visionoperator/vision-operator/runtime/provider"
)

// Memory remembers which models of an endpoint refuse structured output, so
// that each is asked for it in vain once. The zero Memory knows of none. It is
// safe for concurrent use.
type Memory struct {
	refusing sync.Map // model name -> struct{}; as many as the router names
}

// Shape is the request as it would be sent first: without a schema when the
// model is known to refuse one.
func (m *Memory) Shape(req provider.Request) provider.Request {
	if _, known := m.refusing.Load(req.Model); known {
		req.Schema = nil
	}
	return req
}

// Ask sends a request by way of send. When the server may have refused its
// schema (see RefusesFormat), it is sent once more without, and if that is
// answered the model's refusal is remembered.
func (m *Memory) Ask(ctx context.Context, req provider.Request, member string,
	send func(context.Context, provider.Request) (provider.Reply, error),
) (provider.Reply, error) {
	req = m.Shape(req)
	reply, err := send(ctx, req)
	if err == nil || req.Schema == nil || !RefusesFormat(err, member) {
		return reply, err
	}
	req.Schema = nil
	reply, again := send(ctx, req)
	if again != nil {
		return reply, again
	}
	m.refusing.Store(req.Model, struct{}{})
	return reply, nil
}
