// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// maxFile bounds what is read of one file: several times what a namespace's
// router can come from.
const maxFile = 32 << 20

// objects are what files hold of the kinds that a router is compiled from.
type objects struct {
	policies  []v1alpha1.VisionPolicy
	providers []v1alpha1.VisionProvider
	// namespaces are labels by name.
	namespaces map[string]map[string]string

	defaultNamespace string
	// seen says where each object was read, by kind, namespace and name.
	seen map[string]string
	// inNamespace are the namespaces of the policies and providers.
	inNamespace map[string]bool
	// refused are the objects that the API server would refuse to create.
	refused []refusal
	schemas map[string]*kindSchema
	// explained is what explain reads besides; nil passes it over.
	explained *explainable
}

// input is what the router of the default namespace is compiled from. The API
// server gives every namespace its name as a label.
func (o *objects) input(operatorNamespace string) compile.Input {
	labels := map[string]string{}
	maps.Copy(labels, o.namespaces[o.defaultNamespace])
	labels[corev1.LabelMetadataName] = o.defaultNamespace
	return compile.Input{
		Namespace: o.defaultNamespace, NamespaceLabels: labels, OperatorNamespace: operatorNamespace,
		Policies: o.policies, Providers: o.providers,
	}
}

// refusal is an object that the API server would refuse, and why.
type refusal struct {
	object   string
	problems []string
}

// objectError is a document that could not be read.
type objectError struct {
	file     string
	document int // from 1
	err      error
}

// Error names the file, the document and the problem.
func (e *objectError) Error() string {
	return fmt.Sprintf("reading %s: document %d: %v", e.file, e.document, e.err)
}

// Unwrap is the problem.
func (e *objectError) Unwrap() error { return e.err }

// readObjects reads files, directories and, for "-", stdin.
func readObjects(paths []string, namespace string, stdin io.Reader, schemas map[string]*kindSchema) (*objects, error) {
	o := newObjects(namespace, schemas)
	return o, o.readPaths(paths, stdin)
}

func newObjects(namespace string, schemas map[string]*kindSchema) *objects {
	return &objects{namespaces: map[string]map[string]string{}, defaultNamespace: namespace, seen: map[string]string{}, inNamespace: map[string]bool{}, schemas: schemas}
}

// readPaths reads files, directories and, for "-", stdin.
func (o *objects) readPaths(paths []string, stdin io.Reader) error {
	for _, path := range paths {
		if path == "-" {
			if err := o.read("standard input", stdin); err != nil {
				return err
			}
			continue
		}
		files, err := filesOf(path)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := o.readFile(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// filesOf is path itself, or what a directory holds directly, by name.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("reading objects: %w", err)
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("reading objects: directory %s holds no .yaml, .yml or .json file", path)
	}
	return files, nil
}

func (o *objects) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading objects: %w", err)
	}
	defer file.Close()
	return o.read(path, file)
}

// read takes every document of one file.
func (o *objects) read(name string, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	case len(data) > maxFile:
		return fmt.Errorf("reading %s: it is larger than %d MiB", name, maxFile>>20)
	}
	documents := yamlutil.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = o.add(fmt.Sprintf("%s, document %d", name, n), document)
		}
		if err != nil {
			return &objectError{file: name, document: n, err: err}
		}
	}
}

// errTwoDocuments is content that a YAML parser would leave unread.
var errTwoDocuments = errors.New("it holds more than one document: separate them with a line of ---")

// followed reports whether something comes after a document that no --- begins:
// JSON objects one after the other, a document after a line of ..., or one in
// UTF-16. What is wrong with the first document is told by whoever reads it.
func followed(document []byte) bool {
	decoder := goyaml.NewDecoder(bytes.NewReader(document))
	var first, second goyaml.MapSlice
	if decoder.Decode(&first) != nil {
		return false
	}
	return !errors.Is(decoder.Decode(&second), io.EOF)
}

// add takes one YAML or JSON document.
func (o *objects) add(where string, document []byte) error {
	if followed(document) {
		return errTwoDocuments
	}
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return err
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil // comments only
	}
	return o.addJSON(where, data)
}

// object is what every object begins with, Lists among them.
type object struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

func (o *objects) addJSON(where string, data []byte) error {
	var header object
	if err := json.Unmarshal(data, &header); err != nil {
		return fmt.Errorf("it is no Kubernetes object: %w", err)
	}
	group := v1alpha1.GroupVersion.String()
	switch kind := header.APIVersion + " " + header.Kind; kind {
	case " ":
		return errors.New("it has no apiVersion and no kind")
	case "v1 List", group + " VisionPolicyList", group + " VisionProviderList":
		for i, item := range header.Items {
			if err := o.addJSON(where, item); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	case group + " VisionPolicy":
		p, err := decode[v1alpha1.VisionPolicy](header.Kind, header.Metadata.Name, data)
		if err != nil {
			return err
		}
		ok, err := o.place(where, header.Kind, &p.ObjectMeta, data, p.Spec.NamespaceSelector != nil)
		if ok {
			o.policies = append(o.policies, *p)
		}
		return err
	case group + " VisionProvider":
		p, err := decode[v1alpha1.VisionProvider](header.Kind, header.Metadata.Name, data)
		if err != nil {
			return err
		}
		ok, err := o.place(where, header.Kind, &p.ObjectMeta, data, false)
		if ok {
			o.providers = append(o.providers, *p)
		}
		return err
	case "v1 Namespace":
		ns, err := decode[corev1.Namespace](header.Kind, header.Metadata.Name, data)
		if err != nil {
			return err
		}
		o.namespaces[ns.Name] = ns.Labels
		return nil
	default:
		if o.explained != nil {
			if read, known := explainedKinds[kind]; known {
				return read(o, where, header.Metadata.Name, data)
			}
		}
		return otherKind(header.TypeMeta)
	}
}

// otherKind passes over what a router is not compiled from, and refuses what
// only looks like ours.
func otherKind(t metav1.TypeMeta) error {
	if gv := t.GroupVersionKind().GroupVersion(); gv.Group == v1alpha1.GroupVersion.Group {
		return fmt.Errorf("there is no kind %s in %s; want VisionProvider or VisionPolicy of %s", t.Kind, t.APIVersion, v1alpha1.GroupVersion)
	}
	return nil
}

// decode reads one object and refuses fields that its kind does not have.
func decode[T any](kind, name string, data []byte) (*T, error) {
	into := new(T)
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, name, err)
	}
	if len(strict) > 0 {
		return nil, &fieldsError{object: kind + " " + name, problems: strict}
	}
	return into, nil
}

// fieldsError is an object with fields that its kind does not have.
type fieldsError struct {
	object   string
	problems []error
}

// Error names every such field.
func (e *fieldsError) Error() string {
	texts := make([]string, len(e.problems))
	for i, p := range e.problems {
		texts[i] = p.Error()
	}
	return e.object + ": " + strings.Join(texts, "; ")
}

// place gives an object without a namespace the default one, refuses a second of
// its name, and reports whether the API server would take it. A baseline that it
// would not take is told wherever it is.
func (o *objects) place(where, kind string, meta *metav1.ObjectMeta, data []byte, baseline bool) (bool, error) {
	if meta.Name == "" {
		return false, fmt.Errorf("%s: metadata.name is missing", kind)
	}
	if meta.Namespace == "" {
		meta.Namespace = o.defaultNamespace
	}
	key := fmt.Sprintf("%s %s/%s", kind, meta.Namespace, meta.Name)
	if first, twice := o.seen[key]; twice {
		return false, fmt.Errorf("%s is there twice: first in %s", key, first)
	}
	o.seen[key] = where
	o.inNamespace[meta.Namespace] = true
	problems, err := o.schemas[kind].check(data)
	if err != nil {
		return false, fmt.Errorf("%s: %w", key, err)
	}
	for _, problem := range validation.IsDNS1123Subdomain(meta.Name) {
		problems = append(problems, "metadata.name: "+problem)
	}
	if len(problems) > 0 && (meta.Namespace == o.defaultNamespace || baseline || o.explained != nil) {
		o.refused = append(o.refused, refusal{object: key, problems: problems})
	}
	return len(problems) == 0, nil
}
