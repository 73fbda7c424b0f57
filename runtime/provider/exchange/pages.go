// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"net/http"
	"net/url"

	"github.com/visionoperator/vision-operator/runtime/provider"
)

// maxPages bounds how many pages of a list are asked for.
const maxPages = 5

// Pages reads an endpoint's list of models page by page, maxPages at most. Path
// is the first page's, with a query; the next one's has the query parameter mark
// beside it. A page P is read from JSON, and models gives what it lists, and the
// mark of the page after it, "" for the last. Errors are *fault.Fault.
func Pages[P any](ctx context.Context, at Endpoint, header http.Header, path, mark string, models func(P) (of []provider.Listed, next string)) ([]provider.Listed, error) {
	var all []provider.Listed
	last, more := "", ""
	for range maxPages {
		reply, err := Get(ctx, at.Client, at.URL(path+more), header)
		if err != nil {
			return nil, err
		}
		var page P
		if err := Read(reply, &page, "a list of models"); err != nil {
			return nil, err
		}
		of, next := models(page)
		if last != "" && next == last {
			break // a server that knows no pages sends its first again
		}
		all = append(all, of...)
		if next == "" {
			break
		}
		last, more = next, "&"+mark+"="+url.QueryEscape(next)
	}
	return all, nil
}
