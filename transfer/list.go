package transfer

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// List is a list of tables and views as a Source: CSV with the columns namespace, name, kind and
// metadata-location, or a JSON object a line with these members. It is safe for concurrent use.
type List struct {
	name    string
	objects []Object
	byKey   map[string]Object
}

// listLineMax bounds a line of a list.
const listLineMax = 1 << 20

// ReadList reads a list. name names it in messages, and in mirrors.
func ReadList(name string, from io.Reader, levels func(text string) ([]string, error)) (*List, error) {
	read := bufio.NewReaderSize(from, 64<<10)
	first, err := read.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	l := &List{name: name, byKey: make(map[string]Object)}
	if len(first) > 0 && first[0] == '{' {
		err = l.readLines(read)
	} else {
		err = l.readCSV(read, levels)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return l, nil
}

func (l *List) add(o Object, kind string, line int) error {
	switch {
	case len(o.Namespace) == 0 || o.Name == "" || o.MetadataLocation == "":
		return fmt.Errorf("line %d: a table has a namespace, a name and a metadata-location", line)
	case kind != "" && kind != "table" && kind != "view":
		return fmt.Errorf("line %d: kind is table or view, not %q", line, kind)
	}
	o.View = kind == "view"
	l.objects = append(l.objects, o)
	l.byKey[o.key()] = o
	return nil
}

func (l *List) readLines(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, listLineMax)
	for number := 1; lines.Scan(); number++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		var read struct {
			Object
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(lines.Bytes(), &read); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := l.add(read.Object, read.Kind, number); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Columns are the columns of a list in CSV.
func Columns() []string { return []string{"namespace", "name", "kind", "metadata-location"} }

func (l *List) readCSV(from io.Reader, levels func(text string) ([]string, error)) error {
	read := csv.NewReader(from)
	read.FieldsPerRecord = -1
	at := map[string]int{"namespace": 0, "name": 1, "kind": 2, "metadata-location": 3}
	for first := true; ; first = false {
		row, err := read.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := read.FieldPos(0)
		if first && len(row) > 0 && strings.EqualFold(strings.TrimSpace(row[0]), "namespace") {
			clear(at)
			for i, column := range row {
				at[strings.ToLower(strings.TrimSpace(column))] = i
			}
			continue
		}
		cell := func(column string) string {
			i, ok := at[column]
			if !ok || i >= len(row) {
				return ""
			}
			return strings.TrimSpace(row[i])
		}
		namespace, err := levels(cell("namespace"))
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		object := Object{Namespace: namespace, Name: cell("name"), MetadataLocation: cell("metadata-location")}
		if err := l.add(object, cell("kind"), line); err != nil {
			return err
		}
	}
}

// Name implements Source.
func (l *List) Name() string { return l.name }

// Namespaces implements Source.
func (l *List) Namespaces(context.Context) ([]Namespace, error) { return nil, nil }

// List implements Source.
func (l *List) List(_ context.Context, visit func(Object) error) error {
	for _, o := range l.objects {
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

// Load implements Source.
func (l *List) Load(_ context.Context, o Object) (Object, error) {
	found, ok := l.byKey[o.key()]
	if !ok {
		return o, ErrGone
	}
	return found, nil
}
