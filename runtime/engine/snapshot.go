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
	"os"
	"path/filepath"
	"time"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// protocol is how to speak one transport: where the key goes, and who speaks.
type protocol struct {
	header, scheme string
	observer       func(exchange.Endpoint) provider.Observer
}

// protocols are the transports that this build can speak: those that router.Speaks names.
var protocols = map[string]protocol{
	router.TransportOpenAIChatCompletions: {"Authorization", "Bearer ",
		func(at exchange.Endpoint) provider.Observer { return chat.New(at) }},
}

// snapshot is a document made ready to serve. It never changes.
type snapshot struct {
	doc         *router.Document
	profile     *router.Profile // nil when the document has not the engine's
	cacheLimits cache.Limits
	keys        map[string]string // provider name -> key file, where it needs a key
	clients     map[string]*client
}

// client is one endpoint made ready to call.
type client struct {
	// digest names everything the endpoint's answers and connections depend on.
	digest   string
	http     *http.Client
	observer provider.Observer
	err      error // why the endpoint cannot be called
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
				s.clients[id] = newClient(p, &p.Endpoints[e], digest, s.keys[p.Name], o.Version)
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

func newClient(p *router.Provider, ep *router.Endpoint, digest, keyFile, version string) *client {
	c := &client{digest: digest}
	proto, ok := protocols[p.Transport]
	if !ok {
		return c // selection never chooses it
	}
	var auth *transport.Auth
	if keyFile != "" {
		auth = &transport.Auth{Header: proto.header, Scheme: proto.scheme, Source: transport.KeyFile(keyFile, p.Name)}
	}
	c.http, c.err = transport.New(transport.Options{Endpoint: *ep, Version: version, Auth: auth})
	if c.err == nil {
		c.observer = proto.observer(exchange.Endpoint{BaseURL: ep.URL, APIVersion: ep.APIVersion, Client: c.http})
	}
	return c
}

// client returns a client by its ID, or nil; a nil snapshot has none.
func (s *snapshot) client(id string) *client {
	if s == nil {
		return nil
	}
	return s.clients[id]
}

// retire closes the idle connections of clients that next does not keep.
func (s *snapshot) retire(next *snapshot) {
	if s == nil {
		return
	}
	for id, c := range s.clients {
		if c.http != nil && next.client(id) != c {
			c.http.CloseIdleConnections()
		}
	}
}

// granted returns the profile, or the refusal of every request.
func (s *snapshot) granted(id string) (*router.Profile, *fault.Fault) {
	if s.profile == nil {
		return nil, fault.New(fault.PolicyDenied, "ProfileNotFound", "the router grants nothing to profile %q", id).
			With("profile", id).Hint("Ask the platform team: the policy of this pod was removed or never applied.")
	}
	return s.profile, nil
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
