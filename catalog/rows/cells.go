package rows

import (
	"errors"
	"fmt"
	"io"

	"moorage/catalog/rows/parquet"
	"moorage/internal/jsontext"
)

var (
	// errFull means that the answer would be too long.
	errFull = errors.New("the answer is full")
	// errValue means that a stored value is not valid for its type.
	errValue = errors.New("not a value of its type")
)

// writer collects the text of a row. While discarding, it keeps no text, because the row is
// deleted.
type writer struct {
	text         []byte
	left         int // how many bytes text may have
	isDiscarding bool
}

// put appends text.
func (w *writer) put(text string) error {
	if w.isDiscarding {
		return nil
	}
	w.text = append(w.text, text...)
	return w.check()
}

// check returns errFull if the text is too long.
func (w *writer) check() error {
	if len(w.text) > w.left {
		return errFull
	}
	return nil
}

// cell reads one value per row, or per element of a list. It moves all its columns past the entries
// of the value.
type cell interface {
	read(w *writer) error
	columnsOf() []*parquet.Column
}

// rowCell reads rows, as arrays of JSON.
type rowCell struct {
	cells   []cell
	columns []*parquet.Column
}

// read reads a row. After the row, every column must be at the start of the next row or at its end;
// otherwise the file is damaged.
func (r *rowCell) read(w *writer) error {
	if err := w.put("["); err != nil {
		return err
	}
	for i, c := range r.cells {
		if i > 0 {
			if err := w.put(","); err != nil {
				return err
			}
		}
		if err := c.read(w); err != nil {
			return err
		}
	}
	for _, c := range r.columns {
		if repetition, _, err := c.Peek(); err != nil && !errors.Is(err, io.EOF) {
			return err
		} else if repetition != 0 {
			return misfit(c)
		}
	}
	return w.put("]")
}

// misfit returns the error of a column whose levels do not fit the other columns or the schema.
func misfit(c *parquet.Column) error {
	return fmt.Errorf("the levels of column %s do not fit: %w", c.Node.Path(), parquet.ErrDamaged)
}

// peek returns the levels of the next entry, which must exist.
func peek(c *parquet.Column) (repetition, definition int, err error) {
	repetition, definition, err = c.Peek()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("column %s has too few rows: %w", c.Node.Path(), parquet.ErrDamaged)
	}
	return repetition, definition, err
}

// constantCell supplies fixed text for a field that the file lacks.
type constantCell string

func (c constantCell) read(w *writer) error         { return w.put(string(c)) }
func (c constantCell) columnsOf() []*parquet.Column { return nil }

// valueCell reads a primitive value.
type valueCell struct {
	column *parquet.Column
	show   shower
}

func (c *valueCell) columnsOf() []*parquet.Column { return []*parquet.Column{c.column} }

func (c *valueCell) read(w *writer) error {
	_, definition, err := peek(c.column)
	if err != nil {
		return err
	}
	value, err := c.column.Next()
	switch {
	case err != nil:
		return err
	case definition < c.column.Node.Definition:
		return w.put("null")
	case w.isDiscarding:
		return nil
	case len(value.Bytes) > w.left-len(w.text):
		return errFull
	}
	if w.text, err = c.show(w.text, value); err != nil {
		return fmt.Errorf("column %s: %w", c.column.Node.Path(), err)
	}
	return w.check()
}

// isThere reports whether the next value is defined up to a level. All columns must agree.
func isThere(columns []*parquet.Column, level int) (bool, error) {
	there := false
	for i, c := range columns {
		_, definition, err := peek(c)
		if err != nil {
			return false, err
		}
		if i > 0 && there != (definition >= level) {
			return false, misfit(c)
		}
		there = definition >= level
	}
	return there, nil
}

// skip moves all columns past one entry each.
func skip(columns []*parquet.Column) error {
	for _, c := range columns {
		if _, err := c.Next(); err != nil {
			return err
		}
	}
	return nil
}

// namedCell is a field of a struct.
type namedCell struct {
	name string
	cell
}

// structCell reads a struct, as an object.
type structCell struct {
	node    *parquet.Node
	fields  []namedCell
	columns []*parquet.Column
	// If the file has none of the fields, marker is a column that is read only for its levels.
	marker *parquet.Column
}

func (s *structCell) columnsOf() []*parquet.Column { return s.columns }

func (s *structCell) read(w *writer) error {
	if s.node.Repetition == parquet.Optional {
		there, err := isThere(s.columns, s.node.Definition)
		if err != nil {
			return err
		}
		if !there {
			if err := skip(s.columns); err != nil {
				return err
			}
			return w.put("null")
		}
	}
	if err := w.put("{"); err != nil {
		return err
	}
	for i, f := range s.fields {
		if !w.isDiscarding {
			if i > 0 {
				w.text = append(w.text, ',')
			}
			w.text = append(jsontext.AppendQuoted(w.text, f.name), ':')
			if err := w.check(); err != nil {
				return err
			}
		}
		if err := f.read(w); err != nil {
			return err
		}
	}
	if s.marker != nil { // it may be in a list, and then have several entries
		for again := true; again; {
			if _, err := s.marker.Next(); err != nil {
				return err
			}
			repetition, _, err := s.marker.Peek()
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			again = err == nil && repetition > s.node.Repeat
		}
	}
	return w.put("}")
}

// listCell reads a list, as an array.
type listCell struct {
	node     *parquet.Node
	repeated *parquet.Node // the repeated group, which contains an element
	element  cell
	columns  []*parquet.Column
}

func (l *listCell) columnsOf() []*parquet.Column { return l.columns }

func (l *listCell) read(w *writer) error {
	_, err := l.elements(w, "[", "]", func(isFirst bool) error {
		if !isFirst {
			if err := w.put(","); err != nil {
				return err
			}
		}
		return l.element.read(w)
	})
	return err
}

// elements writes a list. It calls read for each element. If the list is null, there is false.
func (l *listCell) elements(w *writer, before, behind string, read func(isFirst bool) error) (there bool, err error) {
	if l.node.Repetition == parquet.Optional {
		there, err := isThere(l.columns, l.node.Definition)
		if err == nil && !there {
			if err = skip(l.columns); err == nil {
				err = w.put("null")
			}
		}
		if err != nil || !there {
			return false, err
		}
	}
	if err := w.put(before); err != nil {
		return false, err
	}
	more, err := isThere(l.columns, l.repeated.Definition)
	if err == nil && !more { // an empty list has an entry too
		err = skip(l.columns)
	}
	for isFirst := true; err == nil && more; isFirst = false {
		if err = read(isFirst); err == nil {
			more, err = l.hasMore()
		}
	}
	if err != nil {
		return false, err
	}
	return true, w.put(behind)
}

// hasMore reports whether the list has another element. All columns must agree.
func (l *listCell) hasMore() (more bool, err error) {
	for i, c := range l.columns {
		repetition, _, err := c.Peek()
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if err != nil {
			repetition = 0
		}
		again := repetition >= l.repeated.Repeat
		if repetition > l.repeated.Repeat || i > 0 && again != more {
			return false, misfit(c)
		}
		more = again
	}
	return more, nil
}

// mapCell reads a map, as an object with the arrays keys and values. The element of its list is the
// key.
type mapCell struct {
	listCell

	value cell
}

func (m *mapCell) read(w *writer) error {
	values := writer{isDiscarding: w.isDiscarding}
	there, err := m.elements(w, `{"keys":[`, `],"values":[`, func(isFirst bool) error {
		if !isFirst {
			if err := w.put(","); err != nil {
				return err
			}
			if err := values.put(","); err != nil {
				return err
			}
		}
		if err := m.element.read(w); err != nil {
			return err
		}
		values.left = w.left - len(w.text)
		return m.value.read(&values)
	})
	if err != nil || !there {
		return err
	}
	return w.put(string(values.text) + "]}")
}
