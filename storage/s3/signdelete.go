package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// readDelete returns the keys in the body of a bulk delete. It accepts the one form that clients
// send. It refuses anything in which a server might find different keys.
func readDelete(body []byte) ([]string, error) {
	if bytes.Contains(body, []byte("<!")) {
		return nil, notSigned("the body has a comment, a section or a type")
	}
	decoder := xml.NewDecoder(bytes.NewReader(body))
	reader := deleteReader{decoder: decoder}
	if err := reader.document(); err != nil {
		return nil, err
	}
	if len(reader.keys) == 0 || len(reader.keys) > deleteBatchMax {
		return nil, notSigned("a bulk delete names 1 to %d objects", deleteBatchMax)
	}
	return reader.keys, nil
}

// deleteReader reads the body of a bulk delete.
type deleteReader struct {
	decoder *xml.Decoder
	keys    []string
}

var errBody = notSigned("the body is not a list of keys that are to be deleted")

// document reads the whole body: one Delete element, with Quiet and Object elements in it.
func (d *deleteReader) document() error {
	root, err := d.next()
	if err != nil {
		return errBody
	}
	if start, ok := root.(xml.StartElement); !ok || start.Name.Local != "Delete" || !plainAttributes(start) {
		return errBody
	}
	err = d.children(map[string]func() error{"Quiet": d.quiet, "Object": d.object})
	if err != nil {
		return err
	}
	if _, err := d.next(); !errors.Is(err, io.EOF) {
		return errBody
	}
	return nil
}

// children reads elements up to the end of their parent.
func (d *deleteReader) children(known map[string]func() error) error {
	for {
		token, err := d.next()
		if err != nil {
			return errBody
		}
		switch token := token.(type) {
		case xml.EndElement:
			return nil
		case xml.StartElement:
			read, ok := known[token.Name.Local]
			if !ok || len(token.Attr) > 0 {
				return errBody
			}
			if err := read(); err != nil {
				return err
			}
		default:
			return errBody
		}
	}
}

// object reads one Object, which must have one Key and nothing else.
func (d *deleteReader) object() error {
	before := len(d.keys)
	err := d.children(map[string]func() error{"Key": func() error {
		key, err := d.text()
		if err == nil && (key == "" || strings.TrimSpace(key) != key) {
			err = errBody
		}
		d.keys = append(d.keys, key)
		return err
	}})
	if err == nil && len(d.keys) != before+1 {
		err = errBody
	}
	return err
}

func (d *deleteReader) quiet() error {
	text, err := d.text()
	if err == nil && text != "true" && text != "false" {
		err = errBody
	}
	return err
}

// text reads the text of an element, up to its end.
func (d *deleteReader) text() (string, error) {
	var text strings.Builder
	for {
		token, err := d.decoder.Token()
		if err != nil {
			return "", errBody
		}
		switch token := token.(type) {
		case xml.CharData:
			text.Write(token)
		case xml.EndElement:
			return text.String(), nil
		default:
			return "", errBody
		}
	}
}

// next returns the next token that is neither white space nor the XML declaration.
func (d *deleteReader) next() (xml.Token, error) {
	for {
		token, err := d.decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, errBody
		}
		switch token := token.(type) {
		case xml.CharData:
			if len(bytes.TrimSpace(token)) > 0 {
				return nil, errBody
			}
		case xml.ProcInst:
			if token.Target != "xml" || d.decoder.InputOffset() > 128 {
				return nil, errBody
			}
		default:
			return token, nil
		}
	}
}

// plainAttributes reports whether an element has no attribute except its namespace.
func plainAttributes(start xml.StartElement) bool {
	for _, attribute := range start.Attr {
		if attribute.Name.Space != "" || attribute.Name.Local != "xmlns" {
			return false
		}
	}
	return true
}
