// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation judges whole VisionProviders and VisionPolicies. It is
// pure: an object in, every problem out, each with its field, in one answer.
//
// The CRDs' schemas and CEL rules refuse most mistakes without any of our
// processes. Here is what they cannot see (certificates, selectors, references
// between fields), and, once more, the rules on which the runtime's safety
// depends: an object may be older than a rule, or come from a file that no API
// server has read. The admission webhook, the compiler and `kubectl vision
// render` share it.
package validation

import (
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// checks collects problems.
type checks struct {
	errs field.ErrorList
	// familiesAt is the field whose problem lists the token families.
	familiesAt *field.Path
}

// invalid adds a problem with a value that may be shown to whoever may read the object.
func (c *checks) invalid(at *field.Path, value any, problem string) {
	c.errs = append(c.errs, field.Invalid(at, value, problem))
}

// bounds are the lowest and highest value of a number; the schema's Minimum and Maximum.
type bounds struct{ min, max int64 }

// The hard bounds of limits: no policy and no provider can go beyond them.
var (
	boundTokens        = bounds{1, 100_000_000}
	boundFileBytes     = bounds{1, 1 << 30}
	boundPixels        = bounds{1, 1_000_000_000}
	boundSide          = bounds{1, 1_000_000}
	boundModelImages   = bounds{1, 10_000}
	boundRequestImages = bounds{1, 1_000}
	boundCacheEntries  = bounds{1, 1_000_000}
	boundCacheBytes    = bounds{1, 16 << 30}
	boundObservations  = bounds{1, 1_000_000_000}
	boundQuotaTokens   = bounds{1, 1_000_000_000_000}
	boundUser          = bounds{0, 1<<31 - 1}
)

func (c *checks) number(at *field.Path, n *int64, b bounds) {
	if n != nil && (*n < b.min || *n > b.max) {
		c.invalid(at, *n, fmt.Sprintf("must be between %d and %d", b.min, b.max))
	}
}

// The bounds of durations, in milliseconds.
const (
	second = int64(1000)
	hour   = 3600 * second
)

var (
	boundTimeout  = bounds{1, hour}
	boundInterval = bounds{10 * second, 24 * hour}
	boundWindow   = bounds{second, 744 * hour}
	boundTTL      = bounds{1, 720 * hour}
)

var (
	durationForm = regexp.MustCompile(`^(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}$`)
	durationPart = regexp.MustCompile(`([0-9]+)(ms|h|m|s)`)
	unitMillis   = map[string]int64{"ms": 1, "s": second, "m": 60 * second, "h": hour}
)

// milliseconds reads a duration of GEP-2257. Four parts of five digits each
// cannot overflow.
func milliseconds(d v1alpha1.Duration) (int64, bool) {
	if !durationForm.MatchString(string(d)) {
		return 0, false
	}
	total := int64(0)
	for _, part := range durationPart.FindAllStringSubmatch(string(d), -1) {
		n, err := strconv.ParseInt(part[1], 10, 64)
		if err != nil {
			return 0, false
		}
		total += n * unitMillis[part[2]]
	}
	return total, true
}

func (c *checks) duration(at *field.Path, d *v1alpha1.Duration, b bounds) {
	if d == nil {
		return
	}
	switch ms, ok := milliseconds(*d); {
	case !ok:
		c.invalid(at, *d, "must be a duration such as 30s, 1h30m or 500ms: whole numbers of up to five digits with the units h, m, s or ms")
	case ms < b.min || ms > b.max:
		c.invalid(at, *d, fmt.Sprintf("must be between %s and %s", span(b.min), span(b.max)))
	}
}

// span writes milliseconds in the largest unit that divides them.
func span(ms int64) string {
	for _, unit := range []string{"h", "m", "s"} {
		if n := unitMillis[unit]; ms%n == 0 {
			return strconv.FormatInt(ms/n, 10) + unit
		}
	}
	return strconv.FormatInt(ms, 10) + "ms"
}

var mediaType = regexp.MustCompile(`^image/[a-z0-9](?:[-+.a-z0-9]*[a-z0-9])?$`)

func (c *checks) mediaTypes(at *field.Path, types []string) {
	c.notEmptied(at, types, "an empty list would accept no image: name at least one type, or leave the field out")
	for i, t := range types {
		if !mediaType.MatchString(t) {
			c.invalid(at.Index(i), t, "must be an image type in lower case, such as image/png")
		}
	}
	c.unique(at, types)
}

// notEmptied refuses a list that is there and holds nothing: the absence of a
// list means no restriction, and the two must not be confused.
func (c *checks) notEmptied(at *field.Path, list []string, problem string) {
	if list != nil && len(list) == 0 {
		c.invalid(at, []string{}, problem)
	}
}

// unique names each element that is there for the second time.
func (c *checks) unique(at *field.Path, list []string) {
	seen := make(map[string]bool, len(list))
	for i, s := range list {
		if seen[s] {
			c.errs = append(c.errs, field.Duplicate(at.Index(i), s))
		}
		seen[s] = true
	}
}

var (
	priceForm  = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,8})(?:[.][0-9]{1,9})?$`)
	aboveZero  = regexp.MustCompile(`[1-9]`)
	dnsLabel   = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$`)
	routeLabel = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9_]*[a-z0-9])?$`)
)

func (c *checks) decimal(at *field.Path, s string) {
	if s != "" && !priceForm.MatchString(s) {
		c.invalid(at, s, "must be a plain decimal such as 1.25, of at most nine digits before and nine after the point")
	}
}

func (c *checks) label(at *field.Path, s string, form *regexp.Regexp, what string) {
	if len(s) > 63 || !form.MatchString(s) {
		chars := "a-z, 0-9 and -"
		if form == routeLabel {
			chars = "a-z, 0-9, - and _"
		}
		c.invalid(at, s, fmt.Sprintf("%s is 1 to 63 of %s, beginning and ending with a letter or digit", what, chars))
	}
}
