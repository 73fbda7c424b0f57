// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
)

const (
	// readIdle is how long a body may stand still while it comes.
	readIdle = time.Minute
	// patientBytes is from which length on a body may take longer than what the
	// server gives every request to come: at less, no link is that slow.
	patientBytes = 64 << 10
	// firstRoom is what is taken for a body of a length that was not told; it grows
	// by growth, since what a buffer leaves behind when it grows nobody counts.
	firstRoom = 64 << 10
	growth    = 4
	// briefly is how long a request that holds room waits for more, while another
	// one does so already: if all could wait, all could wait for each other.
	briefly = 50 * time.Millisecond
)

// received is the body of a request.
type received struct {
	wire []byte // as it came
	body []byte // without its encoding; wire itself where it has none
	held []func()
	// total is how many bytes are held.
	total int64
	bufs  []*[]byte // to be given back
}

// release lets go of the body. It may be called again.
func (v *received) release() {
	for _, buf := range v.bufs {
		giveBack(buf)
	}
	for _, letGo := range v.held {
		letGo()
	}
	*v = received{}
}

// receive reads the request's body whole, within what may be in flight, and
// undoes its encoding. Errors carry a *fault.Fault.
func (x *trip) receive() error {
	coding, f := codingOf(x.r.Header)
	if f != nil {
		return f
	}
	n := x.r.ContentLength
	if n == 0 {
		return nil
	}
	ctx, most := x.r.Context(), x.maxBody()
	var from io.Reader = x.r.Body
	if n < 0 || n > patientBytes {
		from = &patient{from: from, control: http.NewResponseController(x.w)}
	}
	var err error
	if n > 0 {
		x.received.wire, err = x.readTold(ctx, from, n)
	} else {
		x.received.wire, err = x.readUntold(ctx, from, most, firstRoom)
	}
	if err != nil {
		return err
	}
	if x.received.body = x.received.wire; coding != "" {
		x.received.body, err = x.decode(ctx, coding, most)
	}
	return err
}

// patient gives a body as long as it likes, if it only keeps coming. Behind its end
// the server has no deadline on reading.
type patient struct {
	from    io.Reader
	control *http.ResponseController
	until   time.Time // to which the deadline was set
}

func (p *patient) Read(b []byte) (int, error) {
	if now := time.Now(); p.until.Sub(now) < readIdle-time.Second {
		p.until = now.Add(readIdle)
		_ = p.control.SetReadDeadline(p.until) // without a deadline there is none to move
	}
	return p.from.Read(b)
}

// hold takes n bytes of what may be in flight, until the trip's end. Of the trips
// that hold some already, one alone waits for more as long as Hold does.
func (x *trip) hold(ctx context.Context, n int64) error {
	if len(x.received.held) > 0 {
		select {
		case x.growing <- struct{}{}:
			defer func() { <-x.growing }()
		default:
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, briefly)
			defer cancel()
		}
	}
	letGo, err := x.Hold(ctx, n)
	if err != nil {
		return err
	}
	x.received.held, x.received.total = append(x.received.held, letGo), x.received.total+n
	return nil
}

// readTold reads a body of a length that was told.
func (x *trip) readTold(ctx context.Context, from io.Reader, n int64) ([]byte, error) {
	room := roomFor(n)
	if err := x.hold(ctx, room); err != nil {
		return nil, err
	}
	buf := x.take(room)[:n]
	if _, err := io.ReadFull(from, buf); err != nil {
		return nil, unreadable(err)
	}
	return buf, nil
}

// readUntold reads to the end of a body, most bytes of it at most, in a buffer
// that begins with room for first of them.
func (x *trip) readUntold(ctx context.Context, from io.Reader, most, first int64) ([]byte, error) {
	// One byte more tells a body that is over; and more room there can never be.
	last := most + 1
	if x.MaxInFlight > 0 {
		last = min(last, max(x.MaxInFlight-x.received.total, 1))
	}
	room := min(roomFor(first), last)
	if err := x.hold(ctx, room); err != nil {
		return nil, err
	}
	data := x.take(room)[:0]
	for {
		n, err := from.Read(data[len(data):room])
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > most:
			return nil, tooLarge(most)
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, unreadable(err)
		case int64(len(data)) < room:
			continue
		case room == last:
			return data, x.atEnd(ctx, from, most, room)
		}
		grown := min(room*growth, last)
		if err := x.hold(ctx, grown-room); err != nil {
			return nil, err
		}
		data, room = append(make([]byte, 0, grown), data...), grown
	}
}

// atEnd is why a body that has room bytes is refused when it has more.
func (x *trip) atEnd(ctx context.Context, from io.Reader, most, room int64) error {
	var beyond [1]byte
	switch n, err := io.ReadFull(from, beyond[:]); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case n == 0:
		return unreadable(err)
	case room >= most:
		return tooLarge(most)
	}
	return x.hold(ctx, x.MaxInFlight+1) // which says that it can never be
}

// unreadable is the refusal of a body that could not be read: the guard's own for
// one that grew over the limit.
func unreadable(err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	return guard.Unreadable(err)
}

// tooLarge is a body over the limit once its encoding was undone, or of a length
// that was not told.
func tooLarge(most int64) *fault.Fault {
	f := fault.New(fault.BudgetExceeded, "BodyTooLarge", "the body may have %d bytes and has more", most).
		With("max_body_bytes", most).Hint("Shorten the conversation, or send smaller images.")
	f.HTTPStatus = fault.StatusTooLarge
	return f
}
