// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

// childURL makes this test binary a process of its own that posts to a URL and
// prints what came of it: net/http reads the proxy's address once per process.
const childURL = "TRANSPORT_TEST_CHILD_URL"

// child is that process.
func child(url string) {
	c, err := transport.New(transport.Options{Endpoint: endpoint(url), Auth: bearer()})
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := c.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
}

func TestAProxyOfTheEnvironmentIsUsedAndResolvesNoForbiddenHost(t *testing.T) {
	var calls atomic.Int32
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.WriteString(w, "proxied "+r.URL.Host)
	})
	post := func(url string) string {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{childURL + "=" + url, "HTTP_PROXY=" + proxy.URL}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("running the child: %v\n%s", err, out)
		}
		return string(out)
	}
	if got := post("http://models.example/v1"); got != "200 proxied models.example\n" {
		t.Errorf("the call gave %q", got)
	}
	for _, url := range []string{"http://169.254.169.254/", "http://2852039166/", "http://[fd00:ec2::254]/"} {
		if got := post(url); !strings.Contains(got, "refused") {
			t.Errorf("%s gave %q", url, got)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("the proxy had %d calls", calls.Load())
	}
}
