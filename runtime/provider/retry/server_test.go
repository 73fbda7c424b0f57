// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// server is an endpoint that misbehaves. It counts the attempts that reach it.
type server struct {
	url string
	// ca, when set, is what its clients are told to trust.
	ca       string
	attempts atomic.Int32
	// left is closed when a client leaves an attempt unanswered.
	left chan struct{}
}

// misbehave starts a server.
type misbehave func(t *testing.T) *server

// answering gives its handlers one attempt each, and the last one all others.
// Requests are read whole first, as a server must to notice that a client left.
func answering(handlers ...http.HandlerFunc) misbehave {
	return func(t *testing.T) *server {
		s := &server{}
		s.serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			n := int(s.attempts.Add(1))
			handlers[min(n, len(handlers))-1](w, r)
		})
		return s
	}
}

// refusingUnread answers with a status before it reads the request, which it never does.
func refusingUnread(status int) misbehave {
	return func(t *testing.T) *server {
		s := &server{}
		s.serve(t, func(w http.ResponseWriter, _ *http.Request) {
			s.attempts.Add(1)
			w.WriteHeader(status)
		})
		return s
	}
}

func (s *server) serve(t *testing.T, h http.HandlerFunc) {
	s.left = make(chan struct{}, 8)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h(w, r)
		if r.Context().Err() != nil {
			s.left <- struct{}{}
		}
	}))
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.Start()
	t.Cleanup(web.Close)
	s.url = web.URL
}

// deaf has an address that nobody listens at, and that nobody else can take meanwhile.
func deaf(t *testing.T) *server {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return &server{url: fmt.Sprintf("http://127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)}
}

// metadata is a link-local address; whether somebody listens there is never found out.
func metadata(*testing.T) *server { return &server{url: "http://169.254.169.254"} }

// accepting gives each connection to handle, and closes it. An attempt is a connection.
func accepting(scheme string, handle func(net.Conn)) misbehave {
	return func(t *testing.T) *server {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &server{url: scheme + "://" + l.Addr().String()}
		done := make(chan struct{})
		t.Cleanup(func() { _ = l.Close(); <-done })
		go func() {
			defer close(done)
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				s.attempts.Add(1)
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				handle(conn)
				_ = conn.Close()
			}
		}()
		return s
	}
}

// reset closes a connection without a word.
func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

// says reads some of the request and writes text, whatever it is.
func says(text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 64<<10))
		_, _ = io.WriteString(conn, text)
	}
}

// impostor speaks TLS with a certificate of another authority than its clients trust.
func impostor(t *testing.T) *server {
	s := &server{ca: authority(t)}
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Listener = &counting{web.Listener, &s.attempts}
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.StartTLS()
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

// counting counts connections.
type counting struct {
	net.Listener
	n *atomic.Int32
}

func (l *counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.n.Add(1)
	}
	return conn, err
}

// authority is the PEM of a certificate authority that signed nothing.
func authority(t *testing.T) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// replies answers with a status and a body; headers are names and values in turn.
func replies(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangs sends text, if any, and then nothing until the client leaves.
func hangs(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if text != "" {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		}
		wait(r.Context())
	}
}

// wait lasts until a client leaves; a test that would hang fails by its bound.
func wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
}

// breaksOff sends the first half of text and closes the connection. With its
// length announced it is Content-Length that is not met, and a chunk otherwise.
func breaksOff(text string, announced bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if announced {
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		}
		_, _ = io.WriteString(w, text[:len(text)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// large is a JSON document of 10 MB.
var large = `{"padding":"` + strings.Repeat("x", 10<<20) + `"}`
