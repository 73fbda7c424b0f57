// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is what the containers of the cluster's smoke test run.
//
//	probe serve ADDR     answers GET /          with the pod's host name
//	                             GET /get?url=U with what U answers
//	                             GET /read?file=F with what F holds
//	probe get URL        prints what URL answers
//	probe hook ADDR DIR  a mutating webhook, with DIR/tls.crt and DIR/tls.key, that
//	                     labels what it is shown
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

// patience bounds one request: longer than a name takes to resolve.
const patience = 5 * time.Second

func main() {
	client := &http.Client{Timeout: patience}
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "serve":
		log.Print("serving ", args[1])
		log.Fatal(http.ListenAndServe(args[1], handler(client)))
	case len(args) == 2 && args[0] == "get":
		if err := get(client, args[1], os.Stdout); err != nil {
			log.Fatal(err)
		}
	case len(args) == 3 && args[0] == "hook":
		log.Fatal(http.ListenAndServeTLS(args[1], args[2]+"/tls.crt", args[2]+"/tls.key", http.HandlerFunc(mutate)))
	default:
		log.Fatal("usage: probe serve ADDR | probe get URL | probe hook ADDR DIR")
	}
}

// get writes what url answers to out. An answer other than 2xx is an error.
func get(client *http.Client, url string, out io.Writer) error {
	response, err := client.Get(url)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("asking %s: the answer is %s", url, response.Status)
	}
	if _, err := io.Copy(out, response.Body); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	return nil
}

func handler(client *http.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		name, err := os.Hostname()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, name)
	})
	mux.HandleFunc("GET /get", func(w http.ResponseWriter, r *http.Request) {
		if err := get(client, r.FormValue("url"), w); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	mux.HandleFunc("GET /read", func(w http.ResponseWriter, r *http.Request) {
		content, err := os.ReadFile(r.FormValue("file"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(content)
	})
	return mux
}

// review is what of an AdmissionReview a webhook needs to label an object.
type review struct {
	Request struct {
		UID    string `json:"uid"`
		Object struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		} `json:"object"`
	} `json:"request"`
}

// operation is one of a JSON patch.
type operation struct {
	Op    string            `json:"op"`
	Path  string            `json:"path"`
	Value map[string]string `json:"value"`
}

// mutate answers an AdmissionReview with a patch that adds the label probe=seen.
func mutate(w http.ResponseWriter, r *http.Request) {
	var in review
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	labels := map[string]string{"probe": "seen"}
	for name, value := range in.Request.Object.Metadata.Labels {
		labels[name] = value
	}
	patch, err := json.Marshal([]operation{{Op: "add", Path: "/metadata/labels", Value: labels}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1",
		"kind":       "AdmissionReview",
		"response":   map[string]any{"uid": in.Request.UID, "allowed": true, "patchType": "JSONPatch", "patch": patch},
	})
}
