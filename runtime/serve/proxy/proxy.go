// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy is the transparent proxy of model requests: it speaks to agents
// as OpenAI, Anthropic and Google do, so that an agent's own SDK needs no more
// than another base URL, and sends what they ask to the provider that the policy
// names.
//
//	POST /openai/v1/chat/completions                         as OpenAI Chat Completions
//	POST /openai/v1/responses, …/responses/input_tokens      as OpenAI Responses
//	POST /anthropic/v1/messages, …/messages/count_tokens     as Anthropic Messages
//	POST /gemini/v1beta/models/{model}:generateContent, :streamGenerateContent, :countTokens
//	GET  …/models, …/models/{model}                          what the policy serves in each dialect
//
// Whatever the policy opens beside them (runtime.proxy.passthrough) is sent as it
// is; every other path is the dialect's own 404.
//
// A request that needs no change goes up as the very bytes that came, and a reply
// comes back as the upstream wrote it. Headers and query lose the caller's
// credentials and what belongs to one connection, and nothing else. What is
// changed in a body, and which requests are refused, Options.Prepare decides:
// there is no rule about images here.
package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
)

// Options are where requests go.
type Options struct {
	// Prepare makes a request ready to be sent. Its error carries the *fault.Fault
	// that refuses the request.
	Prepare func(context.Context, engine.ModelRequest) (*Prepared, error)
	// Models lists what a dialect's requests may name. Its error carries a *fault.Fault.
	Models func(message.Dialect) ([]engine.Served, error)
	// Passthrough says where a request to another path goes; nil for one that the
	// policy does not open. Its error carries a *fault.Fault.
	Passthrough func(ctx context.Context, method, path string, d message.Dialect, model string) (*engine.Target, error)
	// Hold waits until n bytes fit into what may be in flight at once. Its error
	// carries a *fault.Fault: that there was no room in time, or can be none.
	Hold func(ctx context.Context, n int64) (release func(), err error)
	// MaxInFlight is the most that Hold can ever give, in bytes.
	MaxInFlight int64
	// MaxBodyBytes is the largest body now, after decompression; nil and 0 mean
	// guard.DefaultModelBytes.
	MaxBodyBytes guard.Limit
	// Done is told of each request when it has ended. Nil tells nobody.
	Done func(*Outcome)
}

// Prepared is a request that may be sent; see engine.Prepared.
type Prepared struct {
	engine.Target
	// Body is what to send; where it has no edits, what the client sent is.
	Body *message.Spliced
	// Record is what was decided. Retry may change it.
	Record *engine.Record
	// Preparation is what goes on while the request is under way.
	Preparation
}

// Preparation is the part of engine.Prepared that acts.
type Preparation interface {
	// Release lets go of what bodies read. It is called once, as soon as the upstream
	// has all of them; what Tap gave is written to behind it.
	Release()
	// Tap gets each byte of a reply of a media type as it passes, and is closed
	// behind the last; nil when nothing is to be learnt from it.
	Tap(contentType string) io.WriteCloser
	// MayRetry says that there may be another body to send in place of one that a
	// reply of this status refuses; else such a reply passes as it comes.
	MayRetry(status int) bool
	// Retry gives another body, to be sent once in place of the one that a reply
	// of this status refuses; ok is false where the reply is the answer.
	Retry(status int, reply []byte) (body *message.Spliced, ok bool)
	// Header is what the body needs said beside the client's headers; mostly nil. It
	// is asked for each time that a body is sent.
	Header() http.Header
}

// Outcomes of a request besides the kinds of the faults that refuse it.
const (
	// Answered is a request whose reply came to its end, whatever its status.
	Answered = "answered"
	// Canceled is a request whose caller went away, or that the runtime's own end cut off.
	Canceled = "canceled"
	// Broken is a request whose reply broke off upstream.
	Broken = "broken"
)

// Outcome is what came of a request.
type Outcome struct {
	Dialect   message.Dialect
	Operation Operation
	// Result is Answered, Canceled, Broken, or the kind of the fault that the
	// request was refused with; Reason is that fault's.
	Result, Reason string
	// Status is the upstream's; 0 when it did not answer.
	Status int
	// Provider is who was asked, "namespace/name"; "" for nobody.
	Provider string
	// Record is what was decided about the body; nil where nothing was.
	Record *engine.Record
	// Began is when the request came; Took is how long it took, and Answering until
	// the upstream's headers were there, 0 where they never were.
	Began           time.Time
	Took, Answering time.Duration
	// Retried says that another body was sent in place of one that was refused.
	Retried bool
	// Sent and Received count bytes of bodies, to the upstream and from it.
	Sent, Received int64
}

// prefixes are the paths below which requests are the proxy's, and the dialect
// in which everything there is refused that is of no other.
var prefixes = []struct {
	root    string // with the version, which the upstream's base URL has as well
	dialect message.Dialect
}{
	{"/openai/v1/", message.OpenAIChat},
	{"/anthropic/v1/", message.AnthropicMessages},
	{"/gemini/v1beta/", message.GeminiContents},
}

// Routes returns the paths of the proxy.
func Routes(opts Options) []serve.Route {
	p := newProxy(opts)
	body := guard.Proxied(opts.MaxBodyBytes, p.refuse)
	routes := make([]serve.Route, 0, 3)
	for _, path := range []string{"/openai/", "/anthropic/", "/gemini/"} {
		routes = append(routes, serve.Route{Path: path, Handler: p, Body: body, AsSent: true})
	}
	return routes
}

// proxy serves all paths.
type proxy struct {
	Options
	growing chan struct{} // has room for the one request that waits for more room while it has some
}

func newProxy(opts Options) *proxy {
	if opts.Done == nil {
		opts.Done = func(*Outcome) {}
	}
	return &proxy{Options: opts, growing: make(chan struct{}, 1)}
}

// maxBody is the largest body now.
func (p *proxy) maxBody() int64 {
	if p.MaxBodyBytes != nil {
		if most := p.MaxBodyBytes(); most > 0 {
			return most
		}
	}
	return guard.DefaultModelBytes
}

// ServeHTTP serves one request.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	x := &trip{proxy: p, w: w, r: r, call: parse(path)}
	x.Outcome = Outcome{Dialect: x.call.dialect, Operation: x.call.operation, Began: time.Now()}
	defer x.end()
	x.serve()
}

// trip is one request and its reply.
type trip struct {
	*proxy
	Outcome
	w        http.ResponseWriter
	r        *http.Request
	call     call
	received received
	sending  gate   // behind which the body is read
	prepared func() // lets go of what was prepared; nil where nothing was
}

// end tells what came of the trip, and lets go of what it held. It runs when
// the handler panics as well, to cut off the client.
func (x *trip) end() {
	x.letGo()
	x.Took = time.Since(x.Began)
	x.Done(&x.Outcome)
}

// letGo lets go of the request's body, and of what was prepared for it. It may be
// called again.
func (x *trip) letGo() {
	x.Sent = x.sending.close()
	if x.prepared != nil {
		x.prepared()
		x.prepared = nil
	}
	x.received.release()
}

// serve finds out what is asked.
func (x *trip) serve() {
	c := &x.call
	if method := c.operation.method(); method != "" && takes(method, x.r.Method) {
		switch c.operation {
		case Listing:
			x.list()
		case Describing:
			x.describe()
		default:
			x.ask()
		}
		return
	}
	x.passOrRefuse()
}

// takes says whether what takes a method takes another: HEAD where it takes GET.
func takes(method, sent string) bool {
	return sent == method || sent == http.MethodHead && method == http.MethodGet
}

// ask sends a request to a model.
func (x *trip) ask() {
	if f := guard.DeclaredJSON(x.r); f != nil {
		x.fail(f)
		return
	}
	if err := x.receive(); err != nil {
		x.fail(err)
		return
	}
	prepared, err := x.Prepare(x.r.Context(), engine.ModelRequest{
		Dialect: x.call.dialect, Model: x.call.model, Counting: x.call.operation == Counting, Body: x.received.body,
	})
	if err != nil {
		x.fail(err)
		return
	}
	x.prepared = prepared.Release
	x.Record, x.Provider = prepared.Record, prepared.Provider
	x.forward(prepared)
}

// passOrRefuse sends a request that is none of the proxy's own as it is, where the
// policy opens its path.
func (x *trip) passOrRefuse() {
	c := &x.call
	target, err := x.Passthrough(x.r.Context(), x.r.Method, c.plain, c.dialect, x.modelPassed())
	switch {
	case err != nil:
		x.fail(err)
		return
	case target == nil && c.operation.method() != "" && !takes(c.operation.method(), x.r.Method) && !c.unknownVerb():
		x.fail(x.wrongMethod())
		return
	case target == nil || c.tail == "":
		x.fail(x.notFound())
		return
	}
	x.Operation = Passing
	if err := x.receive(); err != nil {
		x.fail(err)
		return
	}
	x.Provider = target.Provider
	x.forward(&Prepared{Target: *target})
}

// modelPassed is the model that an opened path names: Gemini's, of a verb that the
// proxy does not know, such as models/m:embedContent.
func (x *trip) modelPassed() string {
	if c := &x.call; c.unknownVerb() && !takes(http.MethodGet, x.r.Method) {
		return c.model[:strings.LastIndexByte(c.model, ':')]
	}
	return ""
}
