// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package injection decides which images a conversation is to be shown, where,
// and with which words, and says by which edits of the body's bytes. It is pure:
// it opens no file and knows no time. Find gathers the sights, the caller
// resolves their paths, Settle compares digests, and Edits writes.
//
// # Append-only
//
// A sight is a place of a conversation at which an image is to be shown: a call
// of a vision tool that has its answer, or a Markdown image in a human's
// message. A step is a run of the assistant's turns with the turns that follow
// it up to the assistant's next one. What is decided about a step depends on
// that step, and on what comes before it, alone; so it is decided alike in every
// later request, and the prefix of a conversation never changes: what vendors
// cache and sign stays valid. For a request A and a request B that is A with
// turns appended, every sight of A is one of B, with the same key, state and
// turn. Two things differ: a sight is Fresh until the assistant speaks, and with
// keep: CurrentTurn a Wanted one is Old once a human has spoken again.
package injection
