// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"math"
	"testing"

	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestTheCacheVolumeHoldsWhatTheRuntimeKeepsAndAQuarterMore(t *testing.T) {
	const always = router.MaxUploadBytes + router.MaxReferenceBytes + router.MaxPinnedBytes
	for name, c := range map[string]struct{ observations, content int64 }{
		"without persist, there is room to turn it on": {0, always + compile.DefaultCacheMaxBytes},
		"a small cache, likewise":                      {1, always + compile.DefaultCacheMaxBytes},
		"a large one":                                  {16 << 30, always + 16<<30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cacheSize(c.observations); got.Value() != c.content+c.content/4 {
				t.Errorf("got %d bytes, want %d and a quarter more", got.Value(), c.content)
			}
		})
	}
	if got := cacheSize(math.MaxInt64); got.Value() < math.MaxInt64/2 {
		t.Errorf("the largest cache gets %d bytes", got.Value())
	}
}
