// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"maps"
	"slices"
	"strings"
)

// name is a member's name that some dialect reads.
type name struct {
	text string
	// id is the same for two spellings of one member.
	id uint8
	// number is the spelling's own, in spellings.
	number uint8
}

// nameSet holds ids of names.
type nameSet [2]uint64

func (n *nameSet) has(id uint8) bool { return n[id/64]>>(id%64)&1 == 1 }
func (n *nameSet) add(id uint8)      { n[id/64] |= 1 << (id % 64) }

// names are the members that are read, of all dialects. Gemini's have two
// spellings: protocol buffers take the camel case of their JSON and the field's own name.
var names = func() map[string]*name {
	lines := strings.Fields(`
		model messages input contents instructions system tools functions response_format output_config
		max_tokens max_completion_tokens max_output_tokens previous_response_id conversation prompt
		generateContentRequest,generate_content_request systemInstruction,system_instruction generationConfig,generation_config
		maxOutputTokens mediaResolution,media_resolution level
		role content parts type text refusal reasoning_content tool_calls function_call tool_call_id call_id tool_use_id id
		status output summary result encrypted_content name arguments args function custom
		image_url detail file_id file input_audio audio_url video_url file_data file_url filename
		source url data media_type sha256 bytes mediaType head
		is_error thinking signature title context cache_control
		inlineData,inline_data fileData functionResponse,function_response functionCall
		response mimeType,mime_type fileUri,file_uri displayName,display_name
		thoughtSignature,thought_signature thought`)
	all := make(map[string]*name, 2*len(lines))
	for id, line := range lines {
		for text := range strings.SplitSeq(line, ",") {
			all[text] = &name{text: text, id: uint8(id)}
		}
	}
	// Spellings that are another dialect's member too.
	all["file_data"].id = all["fileData"].id
	all["max_output_tokens"].id = all["maxOutputTokens"].id
	all["functionCall"].id = all["function_call"].id
	for number, text := range slices.Sorted(maps.Keys(all)) {
		all[text].number = uint8(number)
	}
	return all
}()

// spellings are the texts of names, by their numbers.
var spellings = slices.Sorted(maps.Keys(names))

// longestName is more than any name of the table has, in bytes.
const longestName = 32

// nameOf is the known name that a member has, nil for any other.
func nameOf(b []byte, t text) *name {
	if t.size > longestName {
		return nil
	}
	if !t.escaped {
		return names[string(b[t.Start:t.End])]
	}
	return names[decoded(b, t)]
}

// folded are the names in lower case.
var folded = func() map[string]*name {
	all := make(map[string]*name, len(names))
	for text, n := range names {
		all[strings.ToLower(text)] = n
	}
	return all
}()

// alike is the known name that a member has for readers to whom case is nothing,
// such as Go's, and which is not the name as it is written; nil for any other.
func alike(b []byte, t text) *name {
	if t.size > longestName || !t.escaped && lower(b[t.Start:t.End]) {
		return nil
	}
	fold := func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case r == '\u017f': // the long s and the sign of kelvin are letters' other cases
			return 's'
		case r == '\u212a':
			return 'k'
		}
		return r
	}
	return folded[strings.Map(fold, decoded(b, t))]
}

// lower reports whether a name is ASCII without capital letters.
func lower(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// decoded is a string without its escapes. For short ones only: it copies.
func decoded(b []byte, t text) string {
	if !t.escaped {
		return string(b[t.Start:t.End])
	}
	var out strings.Builder
	for i := t.Start; i < t.End; {
		if b[i] != '\\' {
			out.WriteByte(b[i])
			i++
			continue
		}
		r, long, _ := unescape(b[i:t.End])
		out.WriteRune(r)
		i += long
	}
	return out.String()
}
