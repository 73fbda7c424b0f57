// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/visionoperator/vision-operator/runtime/tokens"
)

//go:embed limits.json
var limitsJSON []byte

// vendor is an entry of the file.
type vendor struct {
	// Name is how messages call it.
	Name string `json:"name"`
	// Hosts are its endpoints; see matchHost.
	Hosts []string `json:"hosts"`
	// Transports and Families narrow an endpoint that serves several vendors'
	// models: one of either fits. None is all.
	Transports []string `json:"transports,omitempty"`
	Families   []string `json:"families,omitempty"`
	// Anywhere is set where these families are made and served by this vendor
	// alone, so that an unknown endpoint, such as a gateway, passes its limits on.
	Anywhere bool `json:"anywhere,omitempty"`
	// Extends names a vendor whose limits hold too, except those named again.
	Extends string  `json:"extends,omitempty"`
	Limits  []Limit `json:"limits"`
}

// catalog is read once, when first needed.
var catalog = sync.OnceValue(func() []*vendor {
	c, err := parse(limitsJSON)
	if err != nil {
		panic(err) // The file is part of the program, and tested.
	}
	return c
})

// Find is the limits that an endpoint sets for a model: by the endpoint's host,
// else by the model where only one vendor makes it and nobody else serves it. Open
// models behind an unknown host have none: who runs them sets them.
//
// transport is the router's word (AnthropicMessages and so on), endpointHost a host
// with or without a port, model a name as it goes over the wire, and declaredFamily
// the token family that its provider declares, which tells of a model whose name
// says nothing, such as a deployment's; either may be empty.
func Find(transport, endpointHost, model, declaredFamily string) Limits {
	family := familyOf(model, declaredFamily)
	host := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(endpointHost), "."))
	for _, v := range catalog() {
		if v.at(host) && v.serves(transport, family) {
			return v.limits(ByHost, model)
		}
	}
	for _, v := range catalog() {
		if v.Anywhere && slices.Contains(v.Families, family) {
			return v.limits(ByModel, model)
		}
	}
	return Limits{By: ByNothing}
}

// familyOf is the family that the name tells, else the declared one. A name comes
// first, other than in token rules: which vendor serves a model is not for its
// provider to say.
func familyOf(model, declared string) string {
	byName := tokens.Find(model, "")
	if declared == "" || byName.Match().How != tokens.ByDefault {
		return byName.Name()
	}
	return tokens.Find(model, declared).Name()
}

// at reports whether one of the vendor's hosts is meant.
func (v *vendor) at(host string) bool {
	return slices.ContainsFunc(v.Hosts, func(pattern string) bool { return matchHost(pattern, host) })
}

// matchHost compares a host with a pattern: the whole name; one with a "*" and any
// name with that beginning and end; "name:port" and that port of it; ":port" and
// that port of any host. Otherwise a port makes no difference.
func matchHost(pattern, host string) bool {
	name, port := splitPort(host)
	if n, p, ok := strings.Cut(pattern, ":"); ok {
		return port == p && (n == "" || n == name)
	}
	before, after, open := strings.Cut(pattern, "*")
	if !open {
		return name == pattern
	}
	return len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// splitPort cuts a port off; a bare IPv6 address has none.
func splitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.Count(host, ":") > 1 && !strings.HasPrefix(host, "[") || strings.HasSuffix(host, "]") {
		return host, ""
	}
	return strings.TrimSuffix(host[:i], "."), host[i+1:]
}

// serves reports whether the vendor is meant by transport or family, where its
// hosts are shared.
func (v *vendor) serves(transport, family string) bool {
	if v.Anywhere || len(v.Transports) == 0 && len(v.Families) == 0 {
		return true
	}
	return slices.Contains(v.Transports, transport) || slices.Contains(v.Families, family)
}

// limits are those that hold for the model.
func (v *vendor) limits(by How, model string) Limits {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	out := Limits{Vendor: v.Name, By: by}
	for _, l := range v.Limits {
		if len(l.Models) == 0 || slices.ContainsFunc(l.Models, func(p string) bool { return strings.Contains(name, p) }) {
			out.list = append(out.list, l)
		}
	}
	return out
}

// parse reads and checks the file, and fills in what vendors extend.
func parse(data []byte) ([]*vendor, error) {
	var file struct {
		Comment []string  `json:"comment"`
		Vendors []*vendor `json:"vendors"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("reading the vendors' limits: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading the vendors' limits: something follows the value")
	}
	seen := map[string]*vendor{}
	for _, v := range file.Vendors {
		if v.Name == "" || seen[v.Name] != nil {
			return nil, fmt.Errorf("reading the vendors' limits: the vendor %q is empty or there twice", v.Name)
		}
		if err := v.check(); err != nil {
			return nil, fmt.Errorf("reading the vendors' limits: vendor %q: %w", v.Name, err)
		}
		if v.Extends != "" {
			base := seen[v.Extends]
			if base == nil {
				return nil, fmt.Errorf("reading the vendors' limits: vendor %q: no vendor %q before it", v.Name, v.Extends)
			}
			v.Limits = extended(base.Limits, v.Limits)
		}
		seen[v.Name] = v
	}
	return file.Vendors, nil
}

// extended is base without what own names again, and own.
func extended(base, own []Limit) []Limit {
	out := slices.DeleteFunc(slices.Clone(base), func(b Limit) bool {
		return slices.ContainsFunc(own, func(o Limit) bool { return o.Name == b.Name && (o.FromImages > 0) == (b.FromImages > 0) })
	})
	return append(out, own...)
}

func (v *vendor) check() error {
	if v.Anywhere && len(v.Families) == 0 {
		return errors.New("a vendor found anywhere must name families")
	}
	for _, f := range v.Families {
		if got := tokens.Find("", f); got.Match().How != tokens.ByDeclaration || got.Name() != f {
			return fmt.Errorf("no token family is named %q", f)
		}
	}
	for _, l := range v.Limits {
		if err := l.check(); err != nil {
			return fmt.Errorf("limit %q: %w", l.Name, err)
		}
	}
	return nil
}

func (l Limit) check() error {
	unit, ok := units[l.Name]
	switch {
	case !ok:
		return errors.New("unknown name")
	case l.Source == "":
		return errors.New("no source")
	case l.Confidence != Published && l.Confidence != ThirdParty:
		return fmt.Errorf("unknown confidence %q", l.Confidence)
	case unit != "" && (l.Value <= 0 || len(l.Words) > 0):
		return errors.New("wants a value above 0 and no words")
	case unit == "" && (l.Value != 0 || len(l.Words) == 0):
		return errors.New("wants words and no value")
	case l.Name == Animation && (len(l.Words) != 1 || (l.Words[0] == AnimationFirstFrame) != l.Advice || l.Words[0] != AnimationFirstFrame && l.Words[0] != AnimationRefused):
		return errors.New("wants refused, or firstFrame as advice")
	}
	return nil
}
