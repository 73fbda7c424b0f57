// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// choose returns a number from 0 up to, and not including, n.
type choose func(n int) int

// conversation makes any request: few contents, so that they come again, and
// limits so low that every rule has something to do.
func conversation(pick choose) preflight.Input {
	in := preflight.Input{Candidate: candidate(pick), Limits: defaults()}
	in.Limits.Image.MaxBytes = int64(30 + pick(20))
	in.Limits.Request.MaxDistinctImages = int64(1 + pick(5))
	in.Limits.Request.MaxTotalImageBytes = int64(40 + pick(80))
	if pick(4) == 0 {
		in.Limits.Request.MaxImageTokens = int64(1000 + pick(20_000))
	}
	in.MaxOutputTokens = int64(pick(3) * 500)
	most := 4
	switch pick(9) {
	case 0, 1, 2: // many images, for a vendor with a rule for many
		most = 9
		in.Candidate.Transport, in.Candidate.Host, in.Candidate.Model = router.TransportAnthropicMessages, "api.anthropic.com", "claude-opus-4-7"
		in.Limits.Request.MaxDistinctImages, in.Limits.Request.MaxTotalImageBytes = 20, 2000
	case 3: // as many in one message, for a vendor with a limit for that
		most = 27
		in.Candidate.Transport, in.Candidate.Host = router.TransportOpenAIChatCompletions, "bedrock-runtime.us-east-1.amazonaws.com"
		in.Limits.Request.MaxDistinctImages, in.Limits.Request.MaxTotalImageBytes = 20, 2000
		in.Candidate.Declared.Limits.MaxImages = 0
	}
	marked, signed := pick(2) == 0, pick(2) == 0
	in.TextBytes = int64(pick(200))
	body := pick(3) > 0
	if body {
		in.BodyBytes = 100 + in.TextBytes
	}
	for t := range pick(9) {
		turn := preflight.Turn{Kind: preflight.Kind(pick(4)), TextBytes: int64(pick(4000))}
		turn.Signed = signed && turn.Kind == preflight.Assistant && pick(3) > 0
		if body {
			turn.BodyBytes = turn.TextBytes + 20
		}
		in.Turns = append(in.Turns, turn)
		in.TextBytes += turn.TextBytes
		in.BodyBytes += turn.BodyBytes
		for range pick(most) {
			img := anyImage(pick)
			img.Turn, img.ID = t, fmt.Sprint(len(in.Images))
			if marked {
				img.Soft, img.Untouchable = pick(3) == 0, pick(12) == 0
			}
			if marked && !img.Untouchable && pick(6) == 0 {
				img.Until = t + 1 + pick(4)
			}
			in.Images = append(in.Images, img)
			if body {
				in.BodyBytes += img.Base64Bytes
			}
		}
	}
	return in
}

func candidate(pick choose) preflight.Candidate {
	c := seeing()
	c.Declared.ImageInput = pick(12) > 0
	limits := &router.ModelLimits{}
	c.Declared.Limits = limits
	if pick(2) == 0 {
		limits.MaxImages = int64(1 + pick(8))
	}
	if pick(2) == 0 {
		limits.MaxRequestBytes = int64(3000 + pick(30_000))
	}
	if pick(2) == 0 {
		c.Declared.ContextWindowTokens = int64(2000 + pick(20_000))
	}
	if pick(4) == 0 {
		limits.MaxImageSide = 1500
	}
	return c
}

func anyImage(pick choose) preflight.Image {
	name := pick(10)
	img := picture(fmt.Sprintf("c%d", name), int64(3+name*4))
	img.Base64Bytes = 40 * img.Bytes
	img.Width, img.Height = 240*(1+name), 100*(1+name)
	img.InResult = pick(5) == 0
	switch pick(16) {
	case 0:
		img.SHA256 = ""
	case 1:
		img.Required = true
	case 2:
		img.Bad = fault.New(fault.InvalidToolInput, "ImageMalformed", "the header is broken")
	case 3:
		img.MediaType = "image/tiff"
	}
	return img
}

// until is the request that ended after some of the turns.
func until(in preflight.Input, turns int) preflight.Input {
	out := in
	out.Turns = in.Turns[:turns]
	for _, t := range in.Turns[turns:] {
		out.TextBytes -= t.TextBytes
		out.BodyBytes -= t.BodyBytes
	}
	end := len(in.Images)
	for end > 0 && in.Images[end-1].Turn >= turns {
		end--
		if in.BodyBytes > 0 {
			out.BodyBytes -= in.Images[end].Base64Bytes
		}
	}
	out.Images = in.Images[:end]
	return out
}

// check holds a request to everything that is promised of any.
func check(t *testing.T, in preflight.Input) {
	t.Helper()
	before := in
	before.Images, before.Turns = slices.Clone(in.Images), slices.Clone(in.Turns)
	v := preflight.Review(in)
	if !reflect.DeepEqual(before, in) {
		t.Fatal("the input was changed")
	}
	if again := preflight.Review(in); !reflect.DeepEqual(v, again) {
		t.Fatalf("the same request got two verdicts:\n%+v\n%+v", v, again)
	}
	if v.Allowed != (v.Refusal == nil) || len(v.Decisions) != len(in.Images) {
		t.Fatalf("allowed %t, refusal %v, %d decisions", v.Allowed, v.Refusal, len(v.Decisions))
	}
	sum := int64(0)
	for i, d := range v.Decisions {
		if d.ID != in.Images[i].ID || d.Outcome != preflight.Admitted && (d.Reason == "" || d.Message == "") || d.Outcome == preflight.Admitted && d.Reason != "" {
			t.Fatalf("decision %d: %+v", i, d)
		}
		if d.Required && (d.Outcome == preflight.Degraded || v.Allowed && d.Outcome != preflight.Admitted) || !d.Required && d.Outcome == preflight.Refused {
			t.Fatalf("allowed %t: %+v", v.Allowed, d)
		}
		if img := in.Images[i]; img.Untouchable && (d.Required || d.Outcome != preflight.Admitted) || img.Soft && (d.Required || d.Outcome == preflight.Refused) {
			t.Fatalf("allowed %t, %+v: %+v", v.Allowed, img, d)
		}
		if d.Outcome == preflight.Admitted && !away(in, i) {
			sum += d.Tokens
		}
	}
	if v.Allowed && sum != v.Tokens.Images {
		t.Fatalf("%d tokens are summed up to %d", sum, v.Tokens.Images)
	}
	if want := oracle(in); !slices.Equal(want.left, leftOf(v)) || want.allowed != v.Allowed {
		t.Fatalf("allowed %t, left out %v; the oracle says %t, %v\n%s", v.Allowed, leftOf(v), want.allowed, want.left, outcomes(v))
	}
	withinLimits(t, in, v)
	neverReadmitted(t, in, v)
}

func leftOf(v preflight.Verdict) []int {
	list := []int{}
	for i, d := range v.Decisions {
		if d.Outcome == preflight.Degraded {
			list = append(list, i)
		}
	}
	return list
}

// away says that an image stands in the conversation no more.
func away(in preflight.Input, i int) bool {
	return in.Images[i].Until > 0 && in.Images[i].Until < len(in.Turns)
}

// neverReadmitted compares every request that the conversation has been with it.
func neverReadmitted(t *testing.T, in preflight.Input, v preflight.Verdict) {
	t.Helper()
	for n := 1; n < len(in.Turns); n++ {
		earlier := preflight.Review(until(in, n))
		for i, d := range earlier.Decisions {
			if d.Outcome != preflight.Degraded {
				continue
			}
			if now := v.Decisions[i]; now.Outcome != preflight.Degraded || now.Note() != d.Note() || now.Message != d.Message {
				t.Fatalf("after %d turns: %+v\nafter %d: %+v", n, d, len(in.Turns), now)
			}
		}
	}
}

// withinLimits sums up anew what is admitted, where nothing of it is untouchable.
func withinLimits(t *testing.T, in preflight.Input, v preflight.Verdict) {
	t.Helper()
	if !v.Allowed || slices.ContainsFunc(in.Images, func(img preflight.Image) bool { return img.Untouchable }) {
		return
	}
	contents, occurrences, bytes, body := map[string]bool{}, int64(0), int64(0), in.BodyBytes
	for i, d := range v.Decisions {
		img := in.Images[i]
		if d.Outcome != preflight.Admitted || away(in, i) {
			body -= img.Base64Bytes
			continue
		}
		occurrences++
		key := img.SHA256
		if key == "" {
			key = "image " + img.ID
		}
		if !contents[key] {
			contents[key] = true
			bytes += img.Bytes
		}
	}
	declared := in.Candidate.Declared
	if max := declared.Limits.MaxImages; max > 0 && occurrences > max {
		t.Fatalf("%d images are admitted, %d may be", occurrences, max)
	}
	if max := declared.Limits.MaxRequestBytes; max > 0 && in.BodyBytes > 0 && body > max {
		t.Fatalf("the body has %d bytes, %d may be", body, max)
	}
	if bytes > in.Limits.Request.MaxTotalImageBytes || int64(len(contents)) > in.Limits.Request.MaxDistinctImages {
		t.Fatalf("%d contents of %d bytes are admitted", len(contents), bytes)
	}
}

func TestAnyConversationKeepsWhatIsPromised(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2026))
	shed, refused, allowed := 0, 0, 0
	left, refusals := map[string]int{}, map[string]int{}
	for range 4000 {
		in := conversation(r.IntN)
		check(t, in)
		v := preflight.Review(in)
		for _, d := range v.Decisions {
			if d.Outcome == preflight.Degraded {
				left[d.Reason]++
			}
		}
		if !v.Allowed {
			refusals[v.Refusal.Reason]++
		}
		switch {
		case !v.Allowed:
			refused++
		case len(leftOf(v)) > 0:
			shed++
		default:
			allowed++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d allowed whole, %d with images left out, %d refused", allowed, shed, refused)
	t.Logf("left out: %v\nrefused: %v", left, refusals)
	if min(allowed, shed, refused) < 100 {
		t.Error("the conversations are not of every kind")
	}
	if len(refusals) < 10 {
		t.Error("requests are refused for few reasons")
	}
	for _, reason := range []string{
		preflight.ReasonImages, preflight.ReasonTotalBytes, preflight.ReasonSideAmongMany, preflight.ReasonBody, preflight.ReasonImageTokens,
		preflight.ReasonWindow, preflight.ReasonBlind, preflight.ReasonMediaType, "ImageMalformed",
	} {
		if left[reason] == 0 {
			t.Errorf("%s left no image out", reason)
		}
	}
}

func TestNamesOfContentsDecideNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	for range 300 {
		in := conversation(r.IntN)
		other := in
		other.Images = slices.Clone(in.Images)
		for i := range other.Images {
			if name := other.Images[i].SHA256; name != "" {
				other.Images[i].SHA256 = fmt.Sprintf("%x", 255-name[1])
			}
		}
		if a, b := outcomes(preflight.Review(in)), outcomes(preflight.Review(other)); a != b {
			t.Fatalf("by other names of the contents:\n%s\n%s", a, b)
		}
	}
}

// FuzzReview makes conversations of the fuzzer's bytes.
func FuzzReview(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a conversation of several turns, some of which show images"))
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 9))
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, conversation(func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := int(data[0])
			data = data[1:]
			return b * n / 256
		}))
	})
}
