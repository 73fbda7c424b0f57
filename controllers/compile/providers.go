// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// provider is one accepted VisionProvider as the document will hold it.
type provider struct {
	router.Provider
	// object is the VisionProvider's name.
	object string
	// unshared says that the provider needs a key, and that the key stays in a
	// namespace that is not the one compiled for.
	unshared bool
	// standIn is the least that makes a reference to the provider valid: with it
	// a profile is judged without judging its providers again.
	standIn router.Provider
}

// providerSet holds what became of the VisionProviders that a namespace may use.
type providerSet struct {
	in Input
	// own are the accepted ones of the namespace, by name.
	own []*provider
	// objects and accepted are those of every namespace, and verdicts those that
	// were looked at, by "namespace/name".
	objects  map[string]*v1alpha1.VisionProvider
	accepted map[string]*provider
	verdicts map[string]ProviderVerdict
}

// compileProviders compiles every VisionProvider of the namespace. Those of
// other namespaces are compiled as policies refer to them.
func compileProviders(in Input) *providerSet {
	set := &providerSet{in: in, objects: make(map[string]*v1alpha1.VisionProvider, len(in.Providers)),
		accepted: map[string]*provider{}, verdicts: map[string]ProviderVerdict{}}
	for i := range in.Providers {
		p := &in.Providers[i]
		set.objects[p.Namespace+"/"+p.Name] = p
		if p.Namespace != in.Namespace {
			continue
		}
		if accepted := set.compile(p); accepted != nil {
			set.own = append(set.own, accepted)
		}
	}
	slices.SortFunc(set.own, func(a, b *provider) int { return cmp.Compare(a.Name, b.Name) })
	return set
}

// compile compiles one VisionProvider, once; nil when it is not accepted.
func (s *providerSet) compile(p *v1alpha1.VisionProvider) *provider {
	name := p.Namespace + "/" + p.Name
	if _, done := s.verdicts[name]; done {
		return s.accepted[name]
	}
	doc := providerDocument(s.in.Namespace, p)
	verdict := ProviderVerdict{
		Accepted:     acceptProvider(s.in.Namespace, p, doc),
		Unprogrammed: validation.UnprogrammedProvider(p),
	}
	s.verdicts[name] = verdict
	if verdict.Accepted.OK {
		s.accepted[name] = &provider{Provider: doc, object: p.Name, standIn: standIn(doc),
			unshared: doc.Credential != nil && doc.Credential.Namespace != s.in.Namespace}
	}
	return s.accepted[name]
}

// acceptProvider judges a VisionProvider: by the rules of its kind, which the
// admission webhook shares, then by the document's own.
func acceptProvider(namespace string, p *v1alpha1.VisionProvider, doc router.Provider) Verdict {
	problems := checkProvider(p)
	if len(problems) == 0 {
		problems = documentProblems("providers[0]", &router.Document{
			Version: router.Version, Namespace: namespace, Providers: []router.Provider{doc}})
	}
	if len(problems) > 0 {
		return Verdict{Reason: v1alpha1.ReasonInvalid, Message: joinProblems(problems)}
	}
	return Verdict{OK: true, Reason: v1alpha1.ReasonAccepted, Message: "the provider is valid"}
}

// providerDocument is a VisionProvider in the document's terms, defaults filled in.
func providerDocument(namespace string, p *v1alpha1.VisionProvider) router.Provider {
	doc := router.Provider{
		Name:       p.Namespace + "/" + p.Name,
		Transport:  string(p.Spec.Transport),
		Endpoints:  make([]router.Endpoint, 0, len(p.Spec.Endpoints)),
		Credential: credentialDocument(namespace, p),
		Models:     make([]router.Model, 0, len(p.Spec.Models)),
	}
	for i := range p.Spec.Endpoints {
		doc.Endpoints = append(doc.Endpoints, endpointDocument(&p.Spec.Endpoints[i]))
	}
	for i := range p.Spec.Models {
		doc.Models = append(doc.Models, modelDocument(&p.Spec.Models[i]))
	}
	if d := p.Spec.Discovery; d != nil {
		interval, _ := duration(d.Interval, DefaultDiscoveryInterval) // a bad one is the document's rules' to name
		doc.Discovery = &router.Discovery{Interval: interval}
	}
	return doc
}

func endpointDocument(e *v1alpha1.Endpoint) router.Endpoint {
	timeout, _ := duration(e.Timeout, DefaultEndpointTimeout) // a bad one is the document's rules' to name
	doc := router.Endpoint{Name: e.Name, URL: strings.TrimRight(e.URL, "/"), APIVersion: e.APIVersion,
		CABundle: e.CABundle, Timeout: timeout, AllowPlainHTTP: or(e.AllowPlainHTTP, false)}
	for _, h := range e.Headers {
		doc.Headers = append(doc.Headers, router.Header{Name: h.Name, Value: h.Value})
	}
	return doc
}

// credentialDocument says where the key is. A consumer's key is in the
// namespace that the document serves, under the provider's file all the same.
func credentialDocument(namespace string, p *v1alpha1.VisionProvider) *router.Credential {
	ref := p.Spec.Credentials.SecretRef
	if ref == nil {
		return nil
	}
	doc := &router.Credential{Namespace: p.Namespace, Secret: ref.Name, Key: ref.Key, File: p.Namespace + "/" + p.Name}
	if or(ref.From, v1alpha1.SecretFromProvider) == v1alpha1.SecretFromConsumer {
		doc.Namespace = namespace
	}
	return doc
}

func modelDocument(m *v1alpha1.Model) router.Model {
	doc := router.Model{Name: m.Name, ImageInput: or(m.ImageInput, false), Family: m.Family, ToolImages: string(or(m.ToolImages, "")),
		ContextWindowTokens: or(m.ContextWindowTokens, 0), MaxOutputTokens: or(m.MaxOutputTokens, 0)}
	if l := m.Limits; l != nil {
		doc.Limits = &router.ModelLimits{
			MaxImages:       or(l.MaxImages, 0),
			MaxImageBytes:   or(l.MaxImageBytes, 0),
			MaxImageSide:    or(l.MaxImageSide, 0),
			MaxRequestBytes: or(l.MaxRequestBytes, 0),
			MediaTypes:      slices.Clone(l.MediaTypes),
		}
	}
	return doc
}

func standIn(p router.Provider) router.Provider {
	return router.Provider{Name: p.Name, Transport: p.Transport, Endpoints: p.Endpoints[:1]}
}
