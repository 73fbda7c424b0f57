// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"sync"

	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

// Lowered keeps the schema that was lowered last into each dialect, since the
// same one comes with every request. The zero Lowered has none. It is safe for
// concurrent use.
type Lowered struct {
	last sync.Map // lower.Dialect -> *keptSchema
}

type keptSchema struct{ source, schema []byte }

// Lower is lower.Lower. What it returns is shared, and not to be changed.
func (l *Lowered) Lower(source []byte, to lower.Dialect) ([]byte, error) {
	if kept, ok := l.last.Load(to); ok && bytes.Equal(kept.(*keptSchema).source, source) {
		return kept.(*keptSchema).schema, nil
	}
	schema, err := lower.Lower(source, to)
	if err != nil {
		return nil, err
	}
	l.last.Store(to, &keptSchema{bytes.Clone(source), schema})
	return schema, nil
}
