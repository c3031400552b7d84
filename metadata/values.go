package metadata

import (
	"strconv"

	"moorage"
	"moorage/internal/jsontext"
)

// long consumes the value of a member that must be an integer of 64 bits.
func (c *cursor) long(name string) (int64, error) {
	literal, err := c.Value()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(literal), 10, 64)
	if err != nil {
		return 0, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to a long value: %s: %s", name, jsontext.Clip(string(literal)))
	}
	return n, nil
}

// int consumes the value of a member that must be an integer of 32 bits.
func (c *cursor) int(name string) (int, error) {
	literal, err := c.Value()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(literal), 10, 32)
	if err != nil {
		return 0, moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to an integer value: %s: %s", name, jsontext.Clip(string(literal)))
	}
	return int(n), nil
}

// quoted consumes the value of a member that must be a string, and returns the literal.
func (c *cursor) quoted(name string) ([]byte, error) {
	literal, err := c.Value()
	if err == nil && literal[0] != '"' {
		err = moorage.Errorf(moorage.KindBadRequest,
			"Cannot parse to a string value: %s: %s", name, jsontext.Clip(string(literal)))
	}
	return literal, err
}

// longOrNull consumes the value of a member that is an integer of 64 bits or null.
func (c *cursor) longOrNull(name string) (optional, error) {
	if c.Null() {
		return optional{}, nil
	}
	n, err := c.long(name)
	return optional{n, true}, err
}

// intOrNull consumes the value of a member that is an integer of 32 bits or null.
func (c *cursor) intOrNull(name string) (optional, error) {
	if c.Null() {
		return optional{}, nil
	}
	n, err := c.int(name)
	return optional{int64(n), true}, err
}

// quotedOrNull consumes the value of a member that is a string or null.
func (c *cursor) quotedOrNull(name string) error {
	if c.Null() {
		return nil
	}
	_, err := c.quoted(name)
	return err
}

// quotedList consumes the value of a member that must be an array of strings, and returns it.
func (c *cursor) quotedList(name string) ([]byte, error) {
	c.Space()
	start := c.Pos()
	err := c.Array(func() error {
		_, err := c.quoted(name)
		return err
	})
	return c.From(start), err
}

// string consumes the value of a member that must be a string.
func (c *cursor) string(name string) (string, error) {
	literal, err := c.quoted(name)
	if err != nil {
		return "", err
	}
	return jsontext.Unquote(literal), nil
}

// stringMap consumes the value of a member that must be an object of strings.
func (c *cursor) stringMap(name string) (map[string]string, error) {
	texts := make(map[string]string)
	err := c.eachString(name, func(key, text string) { texts[key] = text })
	return texts, err
}

// eachString consumes the value of a member that must be an object of strings, and calls visit for
// each of its members.
func (c *cursor) eachString(name string, visit func(key, text string)) error {
	if c.Space() != '{' {
		literal, err := c.Value()
		if err == nil {
			err = moorage.Errorf(moorage.KindBadRequest,
				"Cannot parse string map from non-object value: %s: %s", name, jsontext.Clip(string(literal)))
		}
		return err
	}
	return c.Object(func(key []byte) error {
		name := string(key)
		text, err := c.string(name)
		if err == nil {
			visit(name, text)
		}
		return err
	})
}

// stringList consumes the value of a member that must be an array of strings.
func (c *cursor) stringList(name string) ([]string, error) { return arrayOf(c, name, c.string) }

// longList consumes the value of a member that must be an array of integers of 64 bits.
func (c *cursor) longList(name string) ([]int64, error) { return arrayOf(c, name, c.long) }

// intList consumes the value of a member that must be an array of integers of 32 bits.
func (c *cursor) intList(name string) ([]int, error) { return arrayOf(c, name, c.int) }

func arrayOf[T any](c *cursor, name string, value func(name string) (T, error)) ([]T, error) {
	all := []T{}
	err := c.Array(func() error {
		one, err := value(name)
		all = append(all, one)
		return err
	})
	return all, err
}
