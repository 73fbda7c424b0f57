// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"
)

// called is a request with one call, and its body.
func called(t *testing.T, arguments string, inString bool) (*Request, []byte) {
	t.Helper()
	body := `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":` + arguments + `}]}]}`
	d := AnthropicMessages
	if inString {
		quoted, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		body, d = `{"messages":[{"role":"assistant","tool_calls":[{"id":"t","function":{"name":"f","arguments":`+string(quoted)+`}}]}]}`, OpenAIChat
	}
	return mustScan(t, d, body), []byte(body)
}

func TestArgumentsAreReadInEitherForm(t *testing.T) {
	for _, c := range []struct {
		name, arguments string
		want            string
		ok              bool
	}{
		{"the first name", `{"image_path":"b","path":"a"}`, "a", true},
		{"the second name", `{"image_path":"b","prompt":"a"}`, "b", true},
		{"the first whose value is a string", `{"path":5,"image_path":"b"}`, "b", true},
		{"escapes in the value", `{"path":"a\/\u00e9\"\n"}`, "a/é\"\n", true},
		{"escapes in the name", `{"p\u0061th":"a"}`, "a", true},
		{"an empty value", `{"path":""}`, "", true},
		{"the last of two", `{"path":"a","path":"b"}`, "b", true},
		{"the last of two, which is no string", `{"path":"a","path":null}`, "", false},
		{"none", `{"prompt":"a"}`, "", false},
		{"one that stands deeper", `{"a":{"path":"x"}}`, "", false},
		{"an empty object", `{}`, "", false},
		{"as long as may be", `{"path":"` + strings.Repeat("x", longestArgument) + `"}`, strings.Repeat("x", longestArgument), true},
		{"too long", `{"path":"` + strings.Repeat("x", longestArgument+1) + `"}`, "", false},
		{"white space", " { \"path\" : \"a\" } \n", "a", true},
		{"a list", `["path"]`, "", false},
		{"null", `null`, "", false},
		{"arguments beyond what is taken apart", `{"path":"a","x":"` + strings.Repeat("x", longestArguments) + `"}`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, inString := range []bool{false, true} {
				r, body := called(t, c.arguments, inString)
				if got, ok := r.Argument(body, 0, "path", "image_path"); got != c.want || ok != c.ok {
					t.Errorf("in a string %v: %q, %v; want %q, %v", inString, got, ok, c.want, c.ok)
				}
			}
		})
	}
	for _, broken := range []string{"", " ", "now", `{"path":"a"`, `{"path":"a"} x`, `{"path"}`, `"{\"path\":\"a\"}"`, `{"path":"a",}`, "{\"path\":\"a\x01\"}"} {
		r, body := called(t, broken, true)
		if got, ok := r.Argument(body, 0, "path"); got != "" || ok {
			t.Errorf("%q: %q, %v", broken, got, ok)
		}
	}
	r := mustScan(t, OpenAIChat, `{"messages":[{"role":"assistant","tool_calls":[{}]}]}`)
	if got, ok := r.Argument([]byte(`{"messages":[{"role":"assistant","tool_calls":[{}]}]}`), 0, "path"); got != "" || ok {
		t.Errorf("no arguments: %q, %v", got, ok)
	}
}

func TestTheDigestOfArgumentsIsOfWhatTheySay(t *testing.T) {
	digest := func(arguments string, inString bool) [sha256.Size]byte {
		r, body := called(t, arguments, inString)
		return r.ArgumentsDigest(body, 0)
	}
	const plain = `{"a":{"x":1,"y":[true,null]},"path":"é/<>"}`
	want := sha256.Sum256([]byte(plain))
	for name, same := range map[string]string{
		"as it is": plain, "other order": `{"path":"é/<>","a":{"y":[true,null],"x":1}}`, "white space": "{ \"a\": {\"x\":1,\n\"y\": [true , null]}, \"path\":\"é/<>\" }\t",
		"escapes": `{"a":{"x":1,"y":[true,null]},"p\u0061th":"\u00e9\/\u003c>"}`, "numbers of Python": `{"a":{"x":1.0,"y":[true,null]},"path":"é/<>"}`,
		"a name twice": `{"path":"z","a":{"x":1,"y":[true,null]},"path":"é/<>"}`,
	} {
		if digest(same, false) != want || digest(same, true) != want {
			t.Errorf("%s: the digest is another one", name)
		}
	}
	for _, other := range []string{`{"a":{"x":2,"y":[true,null]},"path":"é/<>"}`, `{"a":{"x":1,"y":[null,true]},"path":"é/<>"}`, `{"path":"é/<>"}`, `{}`, `{"a":{"x":"1","y":[true,null]},"path":"é/<>"}`} {
		if digest(other, false) == want || digest(other, true) == want {
			t.Errorf("%s has the same digest", other)
		}
	}
	if digest(`{"n":9007199254740993}`, true) == digest(`{"n":9007199254740992}`, true) {
		t.Error("large numbers are told apart no more")
	}
	for _, raw := range []string{"now\n\"é\"", `{"path":"a"} x`, `{"path":`, strings.Repeat("x", longestArguments+1), "\n" + strings.Repeat("x", longestArguments)} {
		if digest(raw, true) != sha256.Sum256([]byte(raw)) {
			t.Errorf("%.20q: it is not of the bytes", raw)
		}
	}
	empty := sha256.Sum256([]byte("{}"))
	if digest("", true) != empty || digest("{ }", true) != empty || digest("null", false) != empty {
		t.Error("no arguments are not as an empty object")
	}
	large := `{"x":"` + strings.Repeat("x", longestArguments) + `"}`
	if digest(large, false) != sha256.Sum256([]byte(large)) {
		t.Error("a large object is not taken as it is")
	}
}

func TestDecodedIsTheTextUpToSoManyBytes(t *testing.T) {
	for _, c := range []struct {
		name, value string
		most        int
		want        string
		all         bool
	}{
		{"all", `"Look \"here\"\n\u00e9\ud83d\ude00"`, 100, "Look \"here\"\né😀", true},
		{"exactly", `"abc"`, 3, "abc", true},
		{"less", `"abc"`, 2, "ab", false},
		{"nothing of it", `"abc"`, 0, "", false},
		{"an empty one", `""`, 0, "", true},
		{"within a character", `"aé"`, 2, "a", false},
		{"within an escape", `"a\u00e9"`, 2, "a", false},
		{"within an escape of four bytes", `"a\ud83d\ude00b"`, 4, "a", false},
		{"after an escape", `"a\ud83d\ude00b"`, 5, "a😀", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := []byte(`{"messages":[{"role":"user","content":` + c.value + `}]}`)
			r := mustScan(t, OpenAIChat, string(body))
			if got, all := r.Decoded(body, r.Texts[0].Value, c.most); got != c.want || all != c.all {
				t.Errorf("%q, %v; want %q, %v", got, all, c.want, c.all)
			}
		})
	}
	r := &Request{}
	for _, value := range []string{`{}`, `5`, ``, `null`} {
		if got, ok := r.Decoded([]byte(value), Span{0, len(value)}, 9); got != "" || ok {
			t.Errorf("%s: %q, %v", value, got, ok)
		}
	}
}
