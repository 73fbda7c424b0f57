// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// stated is one published limit.
type stated struct {
	Provider, Limit, Unit, Source, Confidence, Note string
	Value                                           json.RawMessage
}

func (s stated) key() string { return s.Provider + "/" + s.Limit }

// held says which limit of the table a published one became.
type held struct {
	vendor string
	name   Name
	// from and window are the condition that it carries.
	from   int
	window int64
	model  string
	// besides are words that the table has beyond the published ones, and why.
	besides []string
	why     string
}

// inTable are the published limits that the table has.
var inTable = map[string]held{
	"openai/max_total_payload":                  {vendor: "openai", name: MaxRequestBytes},
	"openai/max_images":                         {vendor: "openai", name: MaxImages},
	"openai/mime":                               {vendor: "openai", name: MediaTypes},
	"azure-openai/max_images_per_chat_request":  {vendor: "azure-openai", name: MaxImages},
	"azure-openai/max_bytes_per_image":          {vendor: "azure-openai", name: MaxImageBytes},
	"azure-openai/gif":                          {vendor: "azure-openai", name: Animation},
	"anthropic/max_images_200k_models":          {vendor: "anthropic", name: MaxImages, window: 200_000},
	"anthropic/max_images_other_models":         {vendor: "anthropic", name: MaxImages},
	"anthropic/max_dimension":                   {vendor: "anthropic", name: MaxSide},
	"anthropic/many_image_threshold":            {vendor: "anthropic", name: MaxSide, from: 20 + 1},
	"anthropic/max_dimension_many_images":       {vendor: "anthropic", name: MaxSide, from: 20 + 1},
	"anthropic/max_base64_bytes_per_image":      {vendor: "anthropic", name: MaxImageBase64Bytes},
	"anthropic/max_request_body":                {vendor: "anthropic", name: MaxRequestBytes},
	"anthropic/mime":                            {vendor: "anthropic", name: MediaTypes},
	"bedrock-claude/max_base64_bytes_per_image": {vendor: "bedrock-claude", name: MaxImageBase64Bytes},
	"bedrock-claude/source_types":               {vendor: "bedrock-claude", name: Sources},
	"vertex-claude/max_base64_bytes_per_image":  {vendor: "vertex-claude", name: MaxImageBase64Bytes},
	"vertex-claude/source_types":                {vendor: "vertex-claude", name: Sources},
	"bedrock-converse/max_images_per_message":   {vendor: "bedrock-converse", name: MaxImagesPerMessage},
	"bedrock-converse/max_bytes_per_image":      {vendor: "bedrock-converse", name: MaxImageBytes},
	"bedrock-converse/max_dimension":            {vendor: "bedrock-converse", name: MaxSide},
	"bedrock-converse/formats":                  {vendor: "bedrock-converse", name: MediaTypes},
	"bedrock-converse/many_image_max_dimension": {vendor: "bedrock-converse", name: MaxSide, from: 20 + 1, model: "claude"},
	"amazon-nova/max_payload":                   {vendor: "amazon-nova", name: MaxRequestBytes},
	"amazon-nova-2/max_inline_objects":          {vendor: "amazon-nova", name: MaxImages, model: "nova-2"},
	"amazon-nova/max_dimension":                 {vendor: "amazon-nova", name: MaxSide},
	"amazon-nova/animated":                      {vendor: "amazon-nova", name: Animation},
	"gemini-api/max_images":                     {vendor: "gemini-api", name: MaxImages},
	"gemini-api/max_inline_request":             {vendor: "gemini-api", name: MaxRequestBytes},
	"gemini-api/max_inline_request_image_guide": {vendor: "gemini-api", name: MaxRequestBytes},
	"gemini-api/mime":                           {vendor: "gemini-api", name: MediaTypes, besides: []string{"image/gif"}, why: "accepted live, and in the SDK"},
	"vertex-gemini/max_images":                  {vendor: "vertex-gemini", name: MaxImages},
	"vertex-gemini/max_inline_image":            {vendor: "vertex-gemini", name: MaxImageBytes, model: "gemini-3"},
	"vertex-gemini/mime":                        {vendor: "vertex-gemini", name: MediaTypes},
	"mistral/max_images":                        {vendor: "mistral", name: MaxImages},
	"mistral/max_bytes_per_image":               {vendor: "mistral", name: MaxImageBytes},
	"mistral/max_dimension":                     {vendor: "mistral", name: MaxSide},
	"mistral/mime":                              {vendor: "mistral", name: MediaTypes},
	"xai/max_bytes_per_image":                   {vendor: "xai", name: MaxImageBytes},
	"xai/mime":                                  {vendor: "xai", name: MediaTypes},
	"groq/max_base64_request":                   {vendor: "groq", name: MaxRequestBytes},
	"groq/max_pixels":                           {vendor: "groq", name: MaxPixels},
	"groq/max_images":                           {vendor: "groq", name: MaxImages},
	"cohere/max_images":                         {vendor: "cohere", name: MaxImages},
	"cohere/max_total_bytes":                    {vendor: "cohere", name: MaxTotalImageBytes},
	"cohere/mime":                               {vendor: "cohere", name: MediaTypes},
	"deepseek/max_request_body":                 {vendor: "deepseek", name: MaxRequestBytes},
	"deepseek/max_inline_image":                 {vendor: "deepseek", name: MaxImageBytes},
	"deepseek/max_total_images_inline":          {vendor: "deepseek", name: MaxTotalImageBytes},
	"deepseek/max_images":                       {vendor: "deepseek", name: MaxImages},
	"deepseek/max_dimension":                    {vendor: "deepseek", name: MaxSide},
	"deepseek/many_image_threshold":             {vendor: "deepseek", name: MaxSide, from: 15},
	"deepseek/max_dimension_many_images":        {vendor: "deepseek", name: MaxSide, from: 15},
	"deepseek/mime":                             {vendor: "deepseek", name: MediaTypes},
	"fireworks/max_images":                      {vendor: "fireworks", name: MaxImages},
	"fireworks/max_total_base64":                {vendor: "fireworks", name: MaxTotalBase64Bytes},
	"fireworks/formats":                         {vendor: "fireworks", name: MediaTypes},
	"perplexity-agent/max_bytes_per_image":      {vendor: "perplexity", name: MaxImageBase64Bytes},
	"moonshot/max_request_body":                 {vendor: "moonshot", name: MaxRequestBytes},
	"scaleway/max_images":                       {vendor: "scaleway", name: MaxImages},
	"openrouter/mime":                           {vendor: "openrouter", name: MediaTypes},
	"vllm/limit_mm_per_prompt_default":          {vendor: "vllm", name: MaxImages},
	"ollama/data_url_types":                     {vendor: "ollama", name: MediaTypes},
	"lm-studio/formats":                         {vendor: "lm-studio", name: MediaTypes},
}

// notInTable are the published limits that a check of a request cannot hold, and why.
var notInTable = map[string]string{
	"openai/max_patches_per_image":         "the token families refuse it",
	"openai/max_dimension":                 "not a limit: the token families scale it down first",
	"openai/max_bytes_per_image":           "none is stated",
	"openai/max_file_bytes":                "about uploaded files, which a request only names",
	"openai/error_unsupported_format":      "an error's code, not a limit",
	"anthropic/max_images_claude_ai":       "about the application, not the API",
	"anthropic/oversized_image":            "an option of the request, not a limit",
	"bedrock-converse/documents":           "about documents, not images",
	"amazon-nova/s3_max":                   "about stored objects, which a request only names",
	"gemini-api/files_api":                 "about uploaded files, which a request only names",
	"gemini-api/external_url_max":          "about addresses, which are never fetched here",
	"vertex-gemini/max_gcs_image":          "about stored objects, which a request only names",
	"vertex-gemini/max_http_url":           "about addresses, which are never fetched here",
	"xai/max_images":                       "none is stated",
	"groq/max_url_image":                   "about addresses, which are never fetched here",
	"deepseek/max_file_id_image":           "about uploaded files, which a request only names",
	"deepseek/max_total_images_with_files": "about uploaded files, which a request only names",
	"deepseek/max_url_length":              "about addresses, which are never fetched here",
	"deepseek/max_tokens_per_image":        "the token family has it",
	"deepseek/roles":                       "where images may stand is the dialect's, and its own schema contradicts it",
	"fireworks/max_url_image":              "about addresses, which are never fetched here",
	"together/pricing_rule":                "a price; the token family llama-3.2 has it",
	"vllm/image_fetch_timeout":             "about addresses, which are never fetched here",
	"vllm/max_image_pixels":                "a setting of the server without a published value",
	"vllm/file_urls":                       "about addresses, which are never fetched here",
	"vllm/detail":                          "a behaviour, not a limit",
	"ollama/native_images":                 "the shape of another dialect",
	"holon/MAX_IMAGE_BYTES":                "the policy of other software",
	"holon/MAX_IMAGE_PIXELS":               "the policy of other software",
	"new-api/max_request_body":             "the policy of other software",
	"minimax/hosted limits":                "none was found",
	"zai-glm/hosted limits":                "none was found",
}

func publishedLimits(t *testing.T) []stated {
	t.Helper()
	data, err := os.ReadFile("testdata/published_limits.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Origin string
		Limits []stated
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Limits
}

func TestEveryPublishedLimitIsInTheTableOrAccountedFor(t *testing.T) {
	counts, seen := map[string]int{}, map[string]bool{}
	for _, s := range publishedLimits(t) {
		if seen[s.key()] {
			t.Errorf("%s is published twice", s.key())
		}
		seen[s.key()] = true
		h, in := inTable[s.key()]
		_, out := notInTable[s.key()]
		switch {
		case in == out:
			t.Errorf("%s is in both lists or in neither (%v)", s.key(), in)
		case in:
			counts["in the table"]++
			s.compare(t, h)
		default:
			counts["not"]++
		}
	}
	if counts["in the table"] != 64 || counts["not"] != 32 {
		t.Errorf("the published limits are %v, want 64 and 32", counts)
	}
	for _, key := range slices.Concat(keys(inTable), keys(notInTable)) {
		if !seen[key] {
			t.Errorf("%s is listed, but not published", key)
		}
	}
}

func keys[V any](m map[string]V) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

// compare looks for a limit with the published value and the listed condition.
func (s stated) compare(t *testing.T, h held) {
	t.Helper()
	value, words := s.want(t)
	var there []string
	for _, v := range catalog() {
		if v.Name != h.vendor {
			continue
		}
		for _, l := range v.Limits {
			if l.Name != h.name {
				continue
			}
			there = append(there, fmt.Sprintf("%+v", l))
			if l.FromImages != h.from || l.UpToWindow != h.window || h.model != "" && !slices.Contains(l.Models, h.model) || h.model == "" && len(l.Models) > 0 {
				continue
			}
			if h.from > 0 && strings.HasSuffix(s.Limit, "threshold") || s.sameAs(l, value, words, h.besides) {
				return
			}
		}
	}
	t.Errorf("%s: %s %s %s is not in the table of %s: %v", s.key(), s.Value, s.Unit, s.Note, h.vendor, there)
}

func (s stated) sameAs(l Limit, value int64, words, besides []string) bool {
	if l.Name == Animation {
		return l.Words[0] == AnimationFirstFrame && strings.Contains(string(s.Value), "first frame")
	}
	have := slices.Sorted(slices.Values(l.Words))
	want := slices.Sorted(slices.Values(slices.Concat(words, besides)))
	return l.Value == value && slices.Equal(have, want) && string(l.Confidence) == s.Confidence
}

// want is the published value in the table's terms: bytes by the unit as written,
// types in full.
func (s stated) want(t *testing.T) (value int64, words []string) {
	t.Helper()
	if err := json.Unmarshal(s.Value, &words); err == nil {
		for i, w := range words {
			if w = strings.Replace(w, "jpg", "jpeg", 1); s.Unit != "roles" && s.Limit != "source_types" && !strings.HasPrefix(w, "image/") {
				w = "image/" + w
			}
			words[i] = strings.Replace(w, "/ppm", "/x-portable-pixmap", 1)
		}
		slices.Sort(words)
		return 0, slices.Compact(words)
	}
	var number float64
	if err := json.Unmarshal(s.Value, &number); err != nil {
		return 0, nil
	}
	switch {
	case strings.HasPrefix(s.Unit, "MiB"):
		number *= 1 << 20
	case strings.HasPrefix(s.Unit, "MB"):
		number *= 1e6
	}
	return int64(number), nil
}

func TestNotesOfPublishedLimitsAreInTheTableToo(t *testing.T) {
	for _, c := range []struct {
		vendor string
		limit  string
		want   Limit
	}{
		{"openai", "GIF must be non-animated", Limit{Name: Animation, Words: []string{AnimationRefused}, For: []string{"image/gif"}}},
		{"anthropic", "first frame of animations only", Limit{Name: Animation, Words: []string{AnimationFirstFrame}}},
		{"mistral", "GIF single frame only", Limit{Name: Animation, Words: []string{AnimationRefused}, For: []string{"image/gif"}}},
		{"cohere", "GIF non-animated", Limit{Name: Animation, Words: []string{AnimationRefused}, For: []string{"image/gif"}}},
		{"deepseek", "GIF first frame", Limit{Name: Animation, Words: []string{AnimationFirstFrame}, For: []string{"image/gif"}}},
		{"vertex-gemini", "900 for Gemini 3 Pro preview", Limit{Name: MaxImages, Value: 900}},
		{"vertex-gemini", "256 MB inline part", Limit{Name: MaxImageBytes, Value: 256_000_000}},
		{"moonshot", "base64 or file only, no public URL", Limit{Name: Sources, Words: []string{SourceBase64, SourceFile}}},
		{"ollama", "http(s) URLs rejected", Limit{Name: Sources, Words: []string{SourceBase64}}},
		{"perplexity", "png,jpeg,webp,gif", Limit{Name: MediaTypes, Words: []string{"image/png", "image/jpeg", "image/gif", "image/webp"}}},
	} {
		noted := slices.ContainsFunc(publishedLimits(t), func(s stated) bool { return strings.Contains(s.Note, c.limit) })
		i := slices.IndexFunc(catalog(), func(v *vendor) bool { return v.Name == c.vendor })
		if !noted || i < 0 || !slices.ContainsFunc(catalog()[i].Limits, func(l Limit) bool {
			return l.Name == c.want.Name && l.Value == c.want.Value && slices.Equal(l.Words, c.want.Words) && (c.want.For == nil || slices.Equal(l.For, c.want.For))
		}) {
			t.Errorf("%s: %q is not in the table as %s (noted: %v)", c.vendor, c.limit, c.want, noted)
		}
	}
}
