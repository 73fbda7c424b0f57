// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Provider returns everything that is wrong with a VisionProvider, in the order
// of its fields. Neither a credential nor a URL that may hold one is repeated.
func Provider(p *v1alpha1.VisionProvider) field.ErrorList {
	c := &checks{}
	c.label(field.NewPath("metadata", "name"), p.Name, dnsLabel, "the name of a VisionProvider is part of a route and of a file name: it")
	spec, at := &p.Spec, field.NewPath("spec")
	c.transport(at.Child("transport"), spec.Transport)
	c.endpoints(at.Child("endpoints"), spec.Endpoints)
	c.credentials(at.Child("credentials"), &spec.Credentials)
	c.models(at.Child("models"), spec.Models)
	if spec.Discovery != nil {
		c.duration(at.Child("discovery", "interval"), spec.Discovery.Interval, boundInterval)
	}
	if spec.Probe != nil {
		c.duration(at.Child("probe", "interval"), spec.Probe.Interval, boundInterval)
	}
	c.allowedNamespaces(at.Child("allowedNamespaces"), spec.AllowedNamespaces)
	return c.errs
}

// transports are all that there are.
var transports = []v1alpha1.Transport{
	v1alpha1.TransportOpenAIChatCompletions, v1alpha1.TransportOpenAIResponses,
	v1alpha1.TransportAnthropicMessages, v1alpha1.TransportGeminiGenerateContent,
}

func (c *checks) transport(at *field.Path, t v1alpha1.Transport) {
	if !slices.Contains(transports, t) {
		c.errs = append(c.errs, field.NotSupported(at, t, transports))
	}
}

func (c *checks) endpoints(at *field.Path, endpoints []v1alpha1.Endpoint) {
	if len(endpoints) == 0 {
		c.errs = append(c.errs, field.Required(at, "at least one endpoint must be named"))
	}
	names := make(map[string]bool, len(endpoints))
	for i := range endpoints {
		e, at := &endpoints[i], at.Index(i)
		if names[e.Name] {
			c.errs = append(c.errs, field.Duplicate(at.Child("name"), e.Name))
		}
		names[e.Name] = true
		c.label(at.Child("name"), e.Name, routeLabel, "an endpoint's name is part of a route: it")
		c.url(at.Child("url"), e)
		if e.APIVersion != "" && !apiVersionForm.MatchString(e.APIVersion) {
			c.invalid(at.Child("apiVersion"), e.APIVersion, "must be an API version such as 2024-10-21: at most 64 letters, digits, - and ., beginning with a letter or digit")
		}
		c.caBundle(at.Child("caBundle"), e.CABundle)
		c.duration(at.Child("timeout"), e.Timeout, boundTimeout)
		c.headers(at.Child("headers"), e.Headers)
	}
}

var apiVersionForm = regexp.MustCompile(`^[0-9A-Za-z][-0-9A-Za-z.]{0,63}$`)

// caBundle accepts PEM certificates and nothing else; white space and comments
// between them are what bundles in the wild have. The bundle is never repeated:
// a private key may have been pasted with it.
func (c *checks) caBundle(at *field.Path, bundle string) {
	if bundle == "" {
		return
	}
	shown := fmt.Sprintf("(%d bytes)", len(bundle))
	rest, count := []byte(bundle), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		count++
		if block.Type != "CERTIFICATE" {
			c.invalid(at, shown, fmt.Sprintf("PEM block %d is no certificate: a CA bundle holds certificates alone, never a key", count))
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			c.invalid(at, shown, fmt.Sprintf("PEM block %d does not parse as a certificate", count))
		}
	}
	switch {
	case count == 0:
		c.invalid(at, shown, "holds no PEM certificate: want -----BEGIN CERTIFICATE----- and what follows")
	case strings.Contains(string(rest), "-----BEGIN"):
		c.invalid(at, shown, fmt.Sprintf("what follows PEM block %d begins a block and does not parse: it may be cut off", count))
	}
}

var (
	headerToken      = regexp.MustCompile(`^[-!#$%&*+.^_|~0-9A-Za-z]{1,64}$`)
	headerValue      = regexp.MustCompile(`^[!-~](?:[\t -~]*[!-~])?$`)
	headerCredential = regexp.MustCompile(`(?i)^(?:authorization|proxy-authorization|www-authenticate|proxy-authenticate|x-api-key|api-key|apikey|x-apikey|x-goog-api-key|x-auth-token|x-access-token|x-amz-security-token|ocp-apim-subscription-key|cookie|cookie2|set-cookie)$`)
	headerFraming    = regexp.MustCompile(`(?i)^(?:host|content-length|content-type|content-encoding|accept-encoding|transfer-encoding|connection|proxy-connection|keep-alive|te|trailer|upgrade|expect)$`)
)

// headers never repeats a value: it may be a credential in the wrong place.
func (c *checks) headers(at *field.Path, headers []v1alpha1.HTTPHeader) {
	seen := make(map[string]bool, len(headers))
	for i, h := range headers {
		at := at.Index(i)
		switch lower := strings.ToLower(h.Name); {
		case !headerToken.MatchString(h.Name):
			c.invalid(at.Child("name"), h.Name, "a header name is made of letters, digits and -!#$%&*+.^_|~")
		case headerCredential.MatchString(h.Name):
			c.invalid(at.Child("name"), h.Name, "a header must not carry credentials: name the key in spec.credentials")
		case headerFraming.MatchString(h.Name):
			c.invalid(at.Child("name"), h.Name, "a header must not frame the message or name its host: the runtime sets those")
		case seen[lower]:
			c.errs = append(c.errs, field.Duplicate(at.Child("name"), h.Name))
		default:
			seen[lower] = true
		}
		if len(h.Value) > 1024 || !headerValue.MatchString(h.Value) {
			c.invalid(at.Child("value"), field.OmitValueType{}, "a header value must be one line of printable ASCII, without white space at its ends")
		}
	}
}

var (
	secretName = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:[.][a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$`)
	secretKey  = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)
)

func (c *checks) credentials(at *field.Path, creds *v1alpha1.Credentials) {
	if (creds.SecretRef == nil) == (creds.None == nil) {
		c.invalid(at, field.OmitValueType{}, "set exactly one of secretRef and none")
	}
	ref := creds.SecretRef
	if ref == nil {
		return
	}
	at = at.Child("secretRef")
	if len(ref.Name) > 253 || !secretName.MatchString(ref.Name) {
		c.invalid(at.Child("name"), ref.Name, "a Secret's name is made of a-z, 0-9, - and ., each part beginning and ending with a letter or digit")
	}
	if len(ref.Key) > 253 || !secretKey.MatchString(ref.Key) || ref.Key == "." || strings.HasPrefix(ref.Key, "..") {
		c.invalid(at.Child("key"), ref.Key, "a Secret's key is made of letters, digits, -, _ and ., and is not . and does not begin with ..")
	}
	if f := ref.From; f != nil && *f != v1alpha1.SecretFromProvider && *f != v1alpha1.SecretFromConsumer {
		c.errs = append(c.errs, field.NotSupported(at.Child("from"), *f, []v1alpha1.SecretSource{v1alpha1.SecretFromProvider, v1alpha1.SecretFromConsumer}))
	}
}

func (c *checks) models(at *field.Path, models []v1alpha1.Model) {
	if len(models) == 0 {
		c.errs = append(c.errs, field.Required(at, "at least one model must be declared"))
	}
	names := make(map[string]bool, len(models))
	for i := range models {
		m, at := &models[i], at.Index(i)
		if names[m.Name] {
			c.errs = append(c.errs, field.Duplicate(at.Child("name"), m.Name))
		}
		names[m.Name] = true
		c.model(at, m)
	}
}

func (c *checks) model(at *field.Path, m *v1alpha1.Model) {
	if m.Name == "" || len(m.Name) > 253 || strings.ContainsFunc(m.Name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		c.invalid(at.Child("name"), m.Name, "a model's name is part of a route: at most 253 bytes, without white space or control characters")
	}
	if m.ImageInput == nil {
		c.errs = append(c.errs, field.Required(at.Child("imageInput"), "must be said, true or false"))
	}
	c.family(at.Child("family"), m.Family)
	c.number(at.Child("contextWindowTokens"), m.ContextWindowTokens, boundTokens)
	c.number(at.Child("maxOutputTokens"), m.MaxOutputTokens, boundTokens)
	if w, o := m.ContextWindowTokens, m.MaxOutputTokens; w != nil && o != nil && *o > *w {
		c.invalid(at.Child("maxOutputTokens"), *o, fmt.Sprintf("must be at most contextWindowTokens, %d: the window holds input and output together", *w))
	}
	if l := m.Limits; l != nil {
		at := at.Child("limits")
		c.number(at.Child("maxImages"), l.MaxImages, boundModelImages)
		c.number(at.Child("maxImageBytes"), l.MaxImageBytes, boundFileBytes)
		c.number(at.Child("maxImageSide"), l.MaxImageSide, boundSide)
		c.number(at.Child("maxRequestBytes"), l.MaxRequestBytes, boundFileBytes)
		c.mediaTypes(at.Child("mediaTypes"), l.MediaTypes)
	}
	if p := m.Price; p != nil {
		c.decimal(at.Child("price", "inputPerMillionTokens"), p.InputPerMillionTokens)
		c.decimal(at.Child("price", "outputPerMillionTokens"), p.OutputPerMillionTokens)
	}
}

func (c *checks) allowedNamespaces(at *field.Path, a *v1alpha1.AllowedNamespaces) {
	if a == nil {
		return
	}
	bySelector := a.From != nil && *a.From == v1alpha1.NamespacesFromSelector
	switch {
	case a.Selector != nil && !bySelector:
		c.errs = append(c.errs, field.Forbidden(at.Child("selector"), "a selector is only for from: Selector"))
	case a.Selector == nil && bySelector:
		c.errs = append(c.errs, field.Required(at.Child("selector"), "from: Selector needs one"))
	}
	c.errs = append(c.errs, metavalidation.ValidateLabelSelector(a.Selector, metavalidation.LabelSelectorValidationOptions{}, at.Child("selector"))...)
}
