// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/responses"
	"github.com/visionoperator/vision-operator/runtime/provider/retry"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// protocol is how to speak one transport: where the key goes, and who speaks.
type protocol struct {
	key    func(exchange.Endpoint) keyPlace
	client func(exchange.Endpoint) wire
}

// keyPlace is the header that carries a key, and what stands before the key in it.
type keyPlace struct{ header, scheme string }

// wire is what every protocol's client does.
type wire interface {
	provider.Observer
	provider.Sizer
	provider.Lister
}

// bearer is where OpenAI, and nearly all who imitate it, want the key; Azure
// OpenAI has a header of its own.
func bearer(at exchange.Endpoint) keyPlace {
	if at.HostIn("openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com") {
		return keyPlace{header: "Api-Key"}
	}
	return keyPlace{"Authorization", "Bearer "}
}

func always(header string) func(exchange.Endpoint) keyPlace {
	return func(exchange.Endpoint) keyPlace { return keyPlace{header: header} }
}

// protocols are the transports that this build can speak: those that router.Speaks names.
var protocols = map[string]protocol{
	router.TransportOpenAIChatCompletions: {bearer, func(at exchange.Endpoint) wire { return chat.New(at) }},
	router.TransportOpenAIResponses:       {bearer, func(at exchange.Endpoint) wire { return responses.New(at) }},
	router.TransportAnthropicMessages:     {always("X-Api-Key"), func(at exchange.Endpoint) wire { return anthropic.New(at) }},
	router.TransportGeminiGenerateContent: {always("X-Goog-Api-Key"), func(at exchange.Endpoint) wire { return gemini.New(at) }},
}

// snapshot is a document made ready to serve. It never changes.
type snapshot struct {
	doc         *router.Document
	profile     *router.Profile // nil when the document has not the engine's
	catalog     *router.Catalog // of the profile
	rules       *injection.Rules
	cacheLimits cache.Limits
	keys        map[string]string // provider name -> key file, where it needs a key
	clients     map[string]*client
	// terms are what preflight holds requests to, by the routes of declared models:
	// router.Route to *preflight.Terms, each made when it is first needed.
	terms sync.Map
}

// client is one endpoint made ready to call.
type client struct {
	// digest names everything the endpoint's answers and connections depend on.
	digest   string
	host     string // of its base URL, with a port if that names one
	http     *http.Client
	stream   *http.Client // for requests that are passed on: it bounds no reply
	wire     wire
	observer *retry.Observer // wire, with second attempts and a breaker before it; nil when it cannot be called
	timeout  time.Duration   // of one attempt
	err      error           // why the endpoint cannot be called
}

// newSnapshot makes a document ready. Endpoints that did not change keep their
// clients, and with them their connections.
func newSnapshot(doc *router.Document, o Options, before *snapshot) *snapshot {
	s := &snapshot{doc: doc, keys: map[string]string{}, clients: map[string]*client{}}
	for i := range doc.Profiles {
		if doc.Profiles[i].ID == o.Profile {
			s.profile = &doc.Profiles[i]
		}
	}
	if s.profile == nil {
		return s
	}
	s.catalog, s.rules = doc.Catalog(s.profile), injection.RulesOf(s.profile.Injection)
	ttl, _ := time.ParseDuration(s.profile.Cache.TTL) // judged by router.Validate
	s.cacheLimits = cache.Limits{TTL: ttl, MaxEntries: int(s.profile.Cache.MaxEntries), MaxBytes: s.profile.Cache.MaxBytes}
	used := make(map[string]bool, len(s.profile.Providers))
	for _, use := range s.profile.Providers {
		used[use.Provider] = true
	}
	for i := range doc.Providers {
		p := &doc.Providers[i]
		if !used[p.Name] {
			continue
		}
		if p.Credential != nil {
			s.keys[p.Name] = filepath.Join(o.SecretsDir, filepath.FromSlash(p.Credential.File))
		}
		for e := range p.Endpoints {
			id, digest := clientID(p, &p.Endpoints[e]), clientDigest(p, &p.Endpoints[e])
			if old := before.client(id); old != nil && old.digest == digest {
				s.clients[id] = old
			} else {
				s.clients[id] = newClient(p, &p.Endpoints[e], digest, s.keys[p.Name], &o)
			}
		}
	}
	return s
}

func clientID(p *router.Provider, ep *router.Endpoint) string { return p.Name + "@" + ep.Name }

func clientDigest(p *router.Provider, ep *router.Endpoint) string {
	data, _ := json.Marshal([]any{p.Transport, p.Credential, ep}) // strings and lists of strings only
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// answerTimeout is how long a model may think about a request that is passed on
// before it begins to answer: ten minutes, as long as OpenAI's and Anthropic's own
// SDKs wait. An endpoint's timeout is made for looks, which are short.
const answerTimeout = 10 * time.Minute

func newClient(p *router.Provider, ep *router.Endpoint, digest, keyFile string, o *Options) *client {
	c := &client{digest: digest}
	if base, err := url.Parse(ep.URL); err == nil {
		c.host = base.Host
	}
	proto, ok := protocols[p.Transport]
	if !ok {
		return c // selection never chooses it
	}
	at := exchange.Endpoint{BaseURL: ep.URL, APIVersion: ep.APIVersion}
	var auth *transport.Auth
	if keyFile != "" {
		place := proto.key(at)
		auth = &transport.Auth{Header: place.header, Scheme: place.scheme, Source: transport.KeyFile(keyFile, p.Name)}
	}
	c.timeout, _ = time.ParseDuration(ep.Timeout) // judged by router.Validate
	to := transport.Options{Endpoint: *ep, Version: o.Version, Auth: auth, Logger: o.Logger, AnswerTimeout: answerTimeout}
	if c.http, c.err = transport.New(to); c.err != nil {
		return c
	}
	if c.stream, c.err = transport.NewStream(to); c.err != nil {
		return c
	}
	at.Client = c.http
	c.wire = proto.client(at)
	c.observer = retry.New(c.wire, retry.Options{Endpoint: clientID(p, ep), Logger: o.Logger, Attempted: o.Attempted})
	return c
}

// client returns a client by its ID, or nil; a nil snapshot has none.
func (s *snapshot) client(id string) *client {
	if s == nil {
		return nil
	}
	return s.clients[id]
}

// clientOf is the client of a choice, which selection made of this snapshot.
func (s *snapshot) clientOf(choice *selection.Choice) *client {
	return s.clients[clientID(choice.Provider, choice.Endpoint)]
}

// termsOf are the terms of a choice, which selection made of this snapshot.
func (s *snapshot) termsOf(choice *selection.Choice, c *client) *preflight.Terms {
	if terms, ok := s.terms.Load(choice.Route); ok && !choice.Discovered { // a list may change
		return terms.(*preflight.Terms)
	}
	terms := preflight.NewTerms(s.profile.Limits, candidate(choice, c))
	if !choice.Discovered {
		s.terms.Store(choice.Route, terms)
	}
	return terms
}

// retire closes the idle connections of clients that next does not keep.
func (s *snapshot) retire(next *snapshot) {
	if s == nil {
		return
	}
	for id, c := range s.clients {
		if c.stream != nil && next.client(id) != c {
			c.http.CloseIdleConnections()
			c.stream.CloseIdleConnections()
		}
	}
}

// granted returns the profile, or the refusal of every request.
func (s *snapshot) granted(id string) (*router.Profile, *fault.Fault) {
	if s.profile == nil {
		return nil, notGranted(id)
	}
	return s.profile, nil
}

func notGranted(id string) *fault.Fault {
	return fault.New(fault.PolicyDenied, "ProfileNotFound", "the router grants nothing to profile %q", id).
		With("profile", id).Hint("Ask the platform team: the policy of this pod was removed or never applied.")
}

// unmounted returns the providers whose key file is not there now.
func (s *snapshot) unmounted() map[string]bool {
	var gone map[string]bool
	for name, file := range s.keys {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			if gone == nil {
				gone = map[string]bool{}
			}
			gone[name] = true
		}
	}
	return gone
}
