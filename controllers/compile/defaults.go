// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Defaults fill what no layer of policy sets. They are not in the schema: a
// field that nobody set must stay unset in the API, so that it cannot beat
// another layer's value.
const (
	// DefaultImageMaxBytes is 20 MiB, the size up to which the image tools that
	// agents bring along accept a file. Vendors' own, lower limits are models[].limits.
	DefaultImageMaxBytes = 20 << 20
	// DefaultImageMaxPixels is 50 million: a 50 megapixel camera's whole sensor,
	// 200 MB when decoded at 4 bytes each.
	DefaultImageMaxPixels = 50_000_000
	// DefaultOnOversize is Refuse: a copy that is smaller loses what the agent
	// wanted read, and only who writes the policy can say that it does not matter.
	DefaultOnOversize = v1alpha1.OnOversizeRefuse

	// DefaultMaxDistinctImages is 8 different contents in one request.
	DefaultMaxDistinctImages = 8
	// DefaultMaxTotalImageBytes is 20 MiB over the distinct contents of one
	// request, before base64: about 27 MiB on the wire, below the 32 MB that the
	// strictest of the documented vendor limits leaves to a request.
	DefaultMaxTotalImageBytes = 20 << 20
	// DefaultMaxProbedPaths is 16 files whose header one turn may read.
	DefaultMaxProbedPaths = 16
	// DefaultMaxBodyBytes is 64 MiB of an agent's request, twice what the
	// vendors accept, so that history that will be dropped can still be read.
	DefaultMaxBodyBytes = 64 << 20

	// DefaultCacheTTL is a day: the key holds the image's digest, the prompt and
	// the route, so an answer only grows old when a model changes behind its name.
	DefaultCacheTTL = v1alpha1.Duration("24h")
	// DefaultCacheMaxEntries is 1024 observations.
	DefaultCacheMaxEntries = 1024
	// DefaultCacheMaxBytes is 64 MiB: 1024 observations of 64 KiB, several times
	// the usual one.
	DefaultCacheMaxBytes = 64 << 20
	// DefaultCachePersist keeps observations in memory alone.
	DefaultCachePersist = false

	// DefaultEndpointTimeout is a minute: vision models with structured output
	// answer within seconds, and agents give up on a tool after a few minutes.
	DefaultEndpointTimeout = v1alpha1.Duration("60s")

	// DefaultDiscoveryInterval is ten minutes: models come and go by the day.
	DefaultDiscoveryInterval = v1alpha1.Duration("10m")

	// DefaultPerCallModel lets a call name any model that the allow-lists hold.
	DefaultPerCallModel = v1alpha1.PerCallModelAllowed
	// DefaultLogLevel is info: one line for each call, with what came of it.
	DefaultLogLevel = v1alpha1.LogLevelInfo
	// DefaultAdmission is Warn: a pod that a policy cannot serve runs, and whoever
	// created it reads why.
	DefaultAdmission = v1alpha1.AdmissionWarn
	// DefaultMCP serves the tool at /mcp.
	DefaultMCP = true
	// DefaultProxy serves no model proxy: keys that agents do not hold are lent to
	// them only where the platform team says so.
	DefaultProxy = false
	// DefaultSetBaseURLs leaves where agents' SDKs call to the agents.
	DefaultSetBaseURLs = false

	// DefaultInjectionMode shows an image to a model that takes images, and tells
	// the others what it shows.
	DefaultInjectionMode = v1alpha1.InjectionAuto
	// DefaultWaitFor waits for every call: vendors refuse a request without all of them.
	DefaultWaitFor = v1alpha1.WaitForAllToolCalls
	// DefaultKeep changes nothing that was sent before, which prompt caches and
	// signed reasoning depend on.
	DefaultKeep = v1alpha1.KeepThread
	// DefaultMarkdownImages leaves what humans write as it is.
	DefaultMarkdownImages = v1alpha1.MarkdownImagesOff
)

// or is what p points to, or the default when nobody set it.
func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

// duration is d (or the default) in the canonical form of the router document,
// such as "1m0s". It is not ok when d is not a duration above zero.
func duration(d *v1alpha1.Duration, def v1alpha1.Duration) (string, bool) {
	text := string(or(d, def))
	quoted, err := json.Marshal(text)
	if err != nil {
		return text, false
	}
	var parsed metav1.Duration
	if err := parsed.UnmarshalJSON(quoted); err != nil || parsed.Duration <= 0 {
		return text, false
	}
	return parsed.Duration.String(), true
}
