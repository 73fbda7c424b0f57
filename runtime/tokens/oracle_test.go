// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// oracle counts an image by the text of a rule, in another way than the rule's
// code: with big fractions, with soft floating point, or by trying every size.
// no means that the vendor refuses.
type oracle func(w, h int64, detail string) (tokens int64, no bool)

// oracles has one for each family of the catalog, with its numbers written again.
func oracles() map[string]oracle {
	const none = int64(0)
	low512, full := sizing{512, none}, sizing{65535, none}
	fiveSix := map[string]sizing{"low": low512, "high": {2048, 2500}, "original": full, "auto": full}
	legacy := sizing{2048, 1536}
	old := map[string]sizing{"low": legacy, "high": legacy, "original": legacy, "auto": legacy}
	wide := map[string]sizing{"low": {2048, 6144}, "high": {2048, 6144}, "original": {2048, 6144}, "auto": {2048, 6144}}
	gemini3 := table(map[string]int64{"low": 280, "medium": 560, "high": 1120, "ultra_high": 2240, "auto": 1120})
	return map[string]oracle{
		"gpt-6-astra":            openAIPatches("6/5", map[string]sizing{"low": low512, "high": {65535, 2500}, "original": full, "auto": full}, 30000),
		"gpt-6-sol":              openAIPatches("6/5", fiveSix, 30000),
		"gpt-5.6":                openAIPatches("6/5", fiveSix, 30000),
		"gpt-5.5":                openAIPatches("6/5", map[string]sizing{"low": low512, "high": {2048, 2500}, "original": {6000, 10000}, "auto": {6000, 10000}}, 30000),
		"gpt-5.4":                openAIPatches("6/5", map[string]sizing{"low": {2048, 6144}, "high": {2048, 2500}, "original": {6000, 10000}, "auto": {2048, 2500}}, 30000),
		"gpt-5.2":                openAIPatches("6/5", wide, 30000),
		"gpt-4.1-mini":           openAIPatches("162/100", wide, 30000),
		"codex":                  openAIPatches("6/5", old, 30000),
		"gpt-5-mini":             openAIPatches("6/5", old, 30000),
		"gpt-5-nano":             openAIPatches("3/2", old, 30000),
		"gpt-4.1-nano":           openAIPatches("246/100", old, 30000),
		"o4-mini":                openAIPatches("172/100", old, 30000),
		"openai-patch":           openAIPatches("6/5", map[string]sizing{"low": {2048, 6144}, "high": {65535, 6144}, "original": full, "auto": full}, 0),
		"gpt-5":                  openAITiles(70, 140, 768, true, 0, 0),
		"gpt-4o":                 openAITiles(85, 170, 768, true, 0, 0),
		"gpt-4o-mini":            openAITiles(2833, 5667, 768, true, 0, 0),
		"o1":                     openAITiles(75, 150, 768, true, 0, 0),
		"computer-use-preview":   openAITiles(65, 129, 768, true, 0, 0),
		"gpt-image-1":            openAITiles(65, 129, 512, false, 4160, 6240),
		"claude-standard":        anthropicCells(1568, 1568),
		"claude-high":            anthropicCells(2576, 4784),
		"gemini-3":               gemini3,
		"gemini-4":               gemini3,
		"gemini-2.5":             flatOr(map[string]int64{"low": 64, "medium": 256}, geminiTiles),
		"gemini-classic":         geminiTiles,
		"gemini-gdc":             table(map[string]int64{"auto": 258}),
		"mistral":                mistralRows(28, 1540, 10000),
		"pixtral":                mistralRows(16, 1024, 10000),
		"qwen2.5-vl":             qwenCells(28, 3136, 12845056),
		"qwen3-vl":               qwenCells(32, 65536, 16777216),
		"qwen2.5-dashscope":      byDetail(qwenCells(28, 3136, 1280*784), map[string]oracle{"high": qwenCells(28, 3136, 12845056)}),
		"qwen3-dashscope":        byDetail(qwenCells(32, 65536, 1280*1024), map[string]oracle{"high": qwenCells(32, 65536, 16777216)}),
		"qwen-siliconflow":       flatOr(map[string]int64{"low": 256, "auto": 256}, qwenCells(28, 3136, 12845056)),
		"minimax-m3":             qwenCells(28, 3136, 451584),
		"kimi-k2.5":              kimiCells(16384),
		"kimi-k3":                kimiCells(65536),
		"deepseek-v4.1":          deepseekCells,
		"deepseek-v4-vision-exp": table(map[string]int64{"auto": 384}),
		"deepseek-ocr":           table(map[string]int64{"tiny": 64, "small": 100, "base": 256, "large": 400, "gundam": 9*100 + 256, "auto": 9*100 + 256}),
		"deepseek-ocr-2":         table(map[string]int64{"auto": 256 + 6*144}),
		"deepseek-vl2":           deepseekViews,
		"cohere":                 cohereTiles,
		"gemma-3":                gemmaCrops,
		"gemma-4":                gemmaSoft,
		"internvl":               internTiles,
		"llama-3.2":              togetherTiles,
		"llama-4":                llamaCanvas,
		"nova-1":                 novaTable(800, 1300, 1800, 2400, 2600),
		"nova-2":                 novaTable(515, 1035, 1600, 2060, 2155),
		"glm":                    glmHeight,
		"grok":                   grokTiles,
		"muse-glimmer":           table(map[string]int64{"auto": 4096}),
		"phi-3-vision":           phiCrops,
		"unknown":                plainCells,
	}
}

// details are the words tried on each family; most know only some of them.
var details = []string{
	"", "auto", "low", "medium", "high", "original", "ultra_high", "MEDIA_RESOLUTION_LOW", "High", "default",
	"tiny", "small", "base", "large", "gundam", "70", "140", "560", "1120", "pan_and_scan", "high-fidelity", "no such detail",
}

// randomSize draws sides that differ in magnitude, sit around multiples of cells,
// or are extreme.
func randomSize(r *rand.Rand) (w, h int64) {
	side := func() int64 {
		switch r.IntN(6) {
		case 0:
			return []int64{1, 2, 27, 28, 29, 32, 383, 384, 385, 512, 768, 1568, 2048, 2576, 10000, 10001, 65535}[r.IntN(17)]
		case 1:
			return max(1, int64(r.IntN(300))*[]int64{14, 28, 32, 42, 48, 336, 448, 512}[r.IntN(8)]+int64(r.IntN(3))-1)
		case 2:
			return int64(math.Exp(r.Float64() * math.Log(65535)))
		default:
			return int64(1 + r.IntN(6000))
		}
	}
	w, h = side(), side()
	if r.IntN(12) == 0 {
		h = w
	}
	return w, h
}

// sizes is how many random sizes each family is tried on.
const sizes = 10_000

func TestEveryFamilyAgreesWithAnOracleWrittenFromItsText(t *testing.T) {
	known := oracles()
	for _, f := range Default().Families() {
		t.Run(f.Name(), func(t *testing.T) {
			count, ok := known[f.Name()]
			if !ok {
				t.Fatal("no oracle is written for this family")
			}
			seed := fnv.New64a()
			seed.Write([]byte(f.Name()))
			r := rand.New(rand.NewPCG(seed.Sum64(), 4))
			refused := 0
			for range sizes {
				w, h := randomSize(r)
				detail := details[r.IntN(len(details))]
				if r.IntN(2) == 0 {
					detail = ""
				}
				want, no := count(w, h, canonicalDetail(detail))
				got, err := f.Estimate(Image{Width: int(w), Height: int(h), Detail: detail})
				var rejected *RejectError
				switch {
				case no != errors.As(err, &rejected):
					t.Fatalf("%dx%d %q: refused is %v (%v), want %v", w, h, detail, err != nil, err, no)
				case no:
					refused++
				case got.Tokens != want:
					t.Fatalf("%dx%d %q: %d tokens, the oracle has %d: %s", w, h, detail, got.Tokens, want, got.Basis())
				}
				if most, bounded := f.Max(); bounded && got.Tokens > most {
					t.Fatalf("%dx%d %q: %d tokens, above the family's maximum of %d", w, h, detail, got.Tokens, most)
				}
			}
			if refused > sizes/2 {
				t.Fatalf("%d of %d sizes were refused: the sizes try little", refused, sizes)
			}
		})
	}
	for name := range known {
		if f := Find("", name); f.Name() != name {
			t.Errorf("an oracle is written for %q, which is no family", name)
		}
	}
}
