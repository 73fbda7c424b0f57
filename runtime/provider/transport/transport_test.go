// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		child(url)
		return
	}
	goleak.VerifyTestMain(m)
}

const key = "sk-very-secret-0123456789"

// endpoint is one that tests change.
func endpoint(url string) router.Endpoint {
	return router.Endpoint{Name: "default", URL: url, Timeout: "30s"}
}

func client(t *testing.T, o transport.Options) *http.Client {
	t.Helper()
	o.Version = "v1.2.3"
	c, err := transport.New(o)
	if err != nil {
		t.Fatalf("making the client: %v", err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func bearer() *transport.Auth {
	return &transport.Auth{Header: "Authorization", Scheme: "Bearer ", Source: func() (transport.Secret, error) {
		return transport.NewSecret(key), nil
	}}
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, c *http.Client, url string) (string, int, error) {
	t.Helper()
	resp, err := c.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return string(body), resp.StatusCode, err
}

func TestHeadersOfARequest(t *testing.T) {
	var got http.Header
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	ep := endpoint(s.URL)
	ep.Headers = []router.Header{
		{Name: "OpenAI-Organization", Value: "org-1"},
		{Name: "authorization", Value: "Bearer stolen"},
		{Name: "X-API-Key", Value: "stolen"},
		{Name: "Content-Type", Value: "text/plain"},
	}
	if _, _, err := get(t, client(t, transport.Options{Endpoint: ep, Auth: bearer()}), s.URL); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"User-Agent":          "vision-operator/v1.2.3",
		"Openai-Organization": "org-1",
		"Authorization":       "Bearer " + key,
		"X-Api-Key":           "",
		"Content-Type":        "application/json",
	} {
		if v := got.Get(name); v != want {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
}

func TestAProviderWithoutACredentialGetsNone(t *testing.T) {
	var got http.Header
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	ep := endpoint(s.URL)
	ep.Headers = []router.Header{{Name: "Authorization", Value: "Bearer smuggled"}}
	if _, _, err := get(t, client(t, transport.Options{Endpoint: ep}), s.URL); err != nil {
		t.Fatal(err)
	}
	if v := got.Get("Authorization"); v != "" {
		t.Errorf("Authorization = %q", v)
	}
}

// failure returns the classified failure of an error.
func failure(t *testing.T, err error) transport.Failure {
	t.Helper()
	e, ok := errors.AsType[*transport.Error](err)
	if !ok {
		t.Fatalf("%v (%T) holds no *transport.Error", err, err)
	}
	return e.Failure
}

func TestFailuresAreClassified(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + closed.Addr().String()
	_ = closed.Close()
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	release := make(chan struct{})
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(secure.Close)
	for name, tc := range map[string]struct {
		url, timeout string
		want         transport.Failure
	}{
		"nobody listens":                  {refusing, "30s", transport.Connection},
		"a reply that takes too long":     {slow.URL, "20ms", transport.Timeout},
		"a certificate of nobody":         {secure.URL, "30s", transport.Untrusted},
		"TLS where there is none":         {strings.Replace(plain.URL, "http", "https", 1), "30s", transport.Handshake},
		"the metadata address":            {"http://169.254.169.254/latest", "30s", transport.Refusal},
		"the metadata address as number":  {"http://2852039166/", "30s", transport.Refusal},
		"the metadata address, mapped":    {"http://[::ffff:169.254.169.254]/", "30s", transport.Refusal},
		"the unspecified address":         {"http://0.0.0.0:1/", "30s", transport.Refusal},
		"link-local with a port and path": {"http://[fe80::1]:8080/v1", "30s", transport.Refusal},
	} {
		t.Run(name, func(t *testing.T) {
			ep := endpoint(tc.url)
			ep.Timeout = tc.timeout
			_, _, err := get(t, client(t, transport.Options{Endpoint: ep, Auth: bearer()}), tc.url)
			if got := failure(t, err); got != tc.want {
				t.Errorf("failure = %q, want %q", got, tc.want)
			}
			if strings.Contains(err.Error(), key) {
				t.Errorf("the error repeats the key: %v", err)
			}
		})
	}
}

func TestANameThatResolvesToALinkLocalAddressIsRefused(t *testing.T) {
	d := transport.Dialer()
	d.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return dnsAnswering(net.IPv4(169, 254, 169, 254)), nil
	}}
	c := &http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
	_, err := c.Get("http://innocent.example./v1")
	if _, ok := errors.AsType[*transport.AddressError](err); !ok {
		t.Errorf("the call gave %v, want a refusal", err)
	}
}

func TestACallerWhoLeavesIsACancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	c := client(t, transport.Options{Endpoint: endpoint(s.URL)})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	_, err := c.Do(req)
	if got := failure(t, err); got != transport.Canceled {
		t.Errorf("failure = %q", got)
	}
}

func TestTheDeadlineCoversTheReplysBody(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ep := endpoint(s.URL)
	ep.Timeout = "30ms"
	_, _, err := get(t, client(t, transport.Options{Endpoint: ep}), s.URL)
	if got := failure(t, err); got != transport.Timeout {
		t.Errorf("failure = %q", got)
	}
}

func TestAReplyOverTheLimitIsRefusedAfterDecompression(t *testing.T) {
	for name, size := range map[string]int{"one byte over": transport.MaxResponseBytes + 1, "exactly the limit": transport.MaxResponseBytes} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				_, _ = io.Copy(z, io.LimitReader(zeros{}, int64(size)))
				_ = z.Close()
			})
			body, _, err := get(t, client(t, transport.Options{Endpoint: endpoint(s.URL)}), s.URL)
			if size <= transport.MaxResponseBytes {
				if err != nil || len(body) != size {
					t.Fatalf("%d bytes gave %d bytes and %v", size, len(body), err)
				}
				return
			}
			if got := failure(t, err); got != transport.TooLarge {
				t.Errorf("failure = %q", got)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestARedirectToAnotherHostIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	other := serve(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	_, status, err := get(t, client(t, transport.Options{Endpoint: endpoint(s.URL), Auth: bearer()}), s.URL)
	if err != nil || status != http.StatusTemporaryRedirect {
		t.Errorf("the call gave status %d and %v", status, err)
	}
	if reached.Load() {
		t.Error("the other host was called")
	}
}

func TestARedirectWithinTheHostKeepsTheMethodOrStops(t *testing.T) {
	for status, want := range map[int]int{http.StatusPermanentRedirect: http.StatusOK, http.StatusFound: http.StatusFound} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/moved", status)
				return
			}
			if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer "+key {
				t.Errorf("the redirect became %s with %v", r.Method, r.Header)
			}
		})
		if _, got, err := get(t, client(t, transport.Options{Endpoint: endpoint(s.URL), Auth: bearer()}), s.URL+"/"); err != nil || got != want {
			t.Errorf("status %d became %d and %v, want %d", status, got, err, want)
		}
	}
}

func TestACABundleReplacesTheSystemsRoots(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	ep := endpoint(s.URL)
	ep.CABundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	if _, status, err := get(t, client(t, transport.Options{Endpoint: ep}), s.URL); err != nil || status != http.StatusOK {
		t.Errorf("the call gave %d and %v", status, err)
	}
	ep.CABundle = "no certificate"
	if _, err := transport.New(transport.Options{Endpoint: ep}); !errors.Is(err, transport.ErrNoCertificate) {
		t.Errorf("a broken bundle gave %v", err)
	}
}

func TestAMalformedReplyIsNotRepeatedInTheError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = fmt.Fprintf(conn, "nonsense %s\r\n\r\n", key)
			_ = conn.Close()
		}
	}()
	url := "http://" + l.Addr().String()
	_, _, err = get(t, client(t, transport.Options{Endpoint: endpoint(url), Auth: bearer()}), url)
	if got := failure(t, err); got != transport.Connection {
		t.Errorf("failure = %q", got)
	}
	if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("the error repeats the reply: %v", err)
	}
}

func TestAKeyFileThatIsNoFileIsRefusedWithoutWaiting(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, t.TempDir()} {
		failed := make(chan error, 1)
		go func() {
			_, err := transport.KeyFile(path, "team/x")()
			failed <- err
		}()
		select {
		case err := <-failed:
			if f := fault.As(err); f.Reason != "CredentialUnreadable" {
				t.Errorf("got %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("reading the key waits for a writer")
		}
	}
}

func TestKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "team", "openai")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	source := transport.KeyFile(file, "team/openai")
	for _, tc := range []struct {
		name, content, want, reason string
	}{
		{"a missing file", "", "", "CredentialNotMounted"},
		{"a key", key, key, ""},
		{"one trailing newline is dropped", key + "\n", key, ""},
		{"a rotated key is read at once", key + "-2\r\n", key + "-2", ""},
		{"an empty file", "\n", "", "CredentialEmpty"},
		{"a second newline", key + "\n\n", "", "CredentialMalformed"},
		{"a line break within", "sk-\nabc", "", "CredentialMalformed"},
		{"not ASCII", "sk-ключ", "", "CredentialMalformed"},
		{"over the limit", strings.Repeat("k", 64<<10+1), "", "CredentialMalformed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.content != "" {
				if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := source()
			if got.Reveal() != tc.want {
				t.Errorf("key = %q, want %q", got.Reveal(), tc.want)
			}
			if (err != nil) != (tc.reason != "") {
				t.Fatalf("error = %v, want reason %q", err, tc.reason)
			}
			if err == nil {
				return
			}
			if f := fault.As(err); f.Kind != fault.VisionAdapterUnavailable || f.Reason != tc.reason || !strings.Contains(f.Message, "team/openai") {
				t.Errorf("fault = %s %s %q", f.Kind, f.Reason, f.Message)
			}
			if strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "sk-") {
				t.Errorf("the error shows the path or the key: %v", err)
			}
		})
	}
}

func TestAFaultOfTheCredentialReachesTheCaller(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("called without a key") })
	auth := &transport.Auth{Header: "Authorization", Source: transport.KeyFile(filepath.Join(t.TempDir(), "gone"), "team/x")}
	_, _, err := get(t, client(t, transport.Options{Endpoint: endpoint(s.URL), Auth: auth}), s.URL)
	if f := fault.As(err); f.Reason != "CredentialNotMounted" {
		t.Errorf("fault = %+v", f)
	}
}

func TestASecretPrintsAsRedacted(t *testing.T) {
	s := transport.NewSecret(key)
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "secret", s, "within", struct{ S transport.Secret }{s})
	data, err := json.Marshal(map[string]any{"k": s})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(data)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		_, _ = fmt.Fprintf(&out, verb, s)
		_, _ = fmt.Fprintf(&out, verb, struct{ S transport.Secret }{s})
		_, _ = fmt.Fprintf(&out, verb, &s)
	}
	if text := out.String(); strings.Contains(text, "secret-01") || strings.Contains(text, fmt.Sprintf("%x", key)[:16]) {
		t.Errorf("the key shows: %s", text)
	}
}

// TestAKeyThatIsKeptIsReadAgainWhenItsFileIsAnotherOne replaces a file that is old
// enough for its key to be kept, in each of the ways in which keys are rotated.
func TestAKeyThatIsKeptIsReadAgainWhenItsFileIsAnotherOne(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	put := func(name, text string, at time.Time) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, "new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "key")); err != nil {
			t.Fatal(err)
		}
	}
	source := transport.KeyFile(filepath.Join(dir, "key"), "team/x")
	wants := func(step, want string) {
		t.Helper()
		for range 2 {
			if got, err := source(); err != nil || got.Reveal() != want {
				t.Errorf("%s: %q, %v", step, got.Reveal(), err)
			}
		}
	}
	put("1", "key-1", old)
	link("1")
	wants("at first", "key-1")
	put("2", "key-2", old)
	link("2")
	wants("behind a link to a file of the same size and time", "key-2")
	put("2", "key-3", old.Add(time.Second))
	wants("written over", "key-3")
	put("2", "key-44", old.Add(time.Second))
	wants("written over at the same time by another length", "key-44")
	put("2", "key-5", time.Now())
	wants("written over just now", "key-5")
	put("2", "key-6", time.Now())
	wants("and once more", "key-6")
	if err := os.Remove(filepath.Join(dir, "2")); err != nil {
		t.Fatal(err)
	}
	if _, err := source(); err == nil || fault.As(err).Reason != "CredentialNotMounted" {
		t.Errorf("without the file: %v", err)
	}
	put("2", "key-7", old)
	wants("back again", "key-7")
}
