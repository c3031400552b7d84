package jsontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ text, want string }{
		{`{}`, ``}, {" \t\r\n{ \n} ", ``}, {`{"a":1}`, `a=1`}, {`{ "a" : 1 , "b" : [ 1 , {"c":null} ] }`, `a=1 b=[ 1 , {"c":null} ]`},
		{`{"a":-0.5e+10,"b":0,"c":1E9}`, `a=-0.5e+10 b=0 c=1E9`}, {`{"\u0061\n":"\ud83d\ude00"}`, "a\n=\"\\ud83d\\ude00\""},
		{`{"a":{"x":1},"b":{"x":1}}`, `a={"x":1} b={"x":1}`}, {`{"":true,"A":false}`, `=true A=false`}, {`{"a":9223372036854775808}`, `a=9223372036854775808`},
	} {
		members, err := parseObject([]byte(row.text))
		var got []string
		for _, m := range members {
			got = append(got, string(m.Name)+"="+string(m.Value.Bytes()))
		}
		if err != nil || strings.Join(got, " ") != row.want {
			t.Errorf("%q: %v %q, want %q", row.text, err, got, row.want)
		}
	}
}

// wide returns an object with n members, followed by last, the text of one more member.
func wide(n int, last string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `"m%d":%d,`, i, i)
	}
	return "{" + text.String() + last + "}"
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, ` `, `[]`, `"x"`, `5`, `null`, `true`, `{`, `}`, `{]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{'a':1}`, `{"a":1}}`, `{} {}`, `{}x`, `{}//`,
		`{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":1e}`, `{"a":-}`, `{"a":NaN}`, `{"a":Infinity}`, `{"a":0x1}`, `{"a":tru}`, `{"a":True}`, `{"a":nul}`,
		`{"a":"`, `{"a":"\`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, "{\"a\":\"\n\"}", "{\"a\":\"\x00\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}",
		`{"a":"\ud800"}`, `{"a":"\udc00"}`, `{"a":"\ud800x"}`, `{"a":"\ud800\n"}`, `{"a":"\ud800\ud800"}`, `{"a":"\udc00\udc00"}`, `{"a":"\ud83d\u0041"}`,
		"\ufeff{}", `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":{"c":1,"c":1}}}`, `{"a":[{"b":1,"b":1}]}`, wide(15, `"m0":1`), wide(16, `"m3":1`), wide(40, `"m39":1`), wide(40, `"m1":1`),
		`{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[1}`, `{"a":[`, `{"a":` + strings.Repeat("[", checkDepthMax) + strings.Repeat("]", checkDepthMax) + `}`,
		strings.Repeat(`{"a":`, 100_000), `{"a":` + strings.Repeat(`[`, 100_000),
	} {
		if members, err := parseObject([]byte(text)); err == nil {
			t.Errorf("%.60q: %v", text, members)
		}
	}
	for _, text := range []string{
		wide(16, `"x":1`), wide(40, `"x":1`), `{"a":` + strings.Repeat("[", checkDepthMax-1) + strings.Repeat("]", checkDepthMax-1) + `}`,
	} {
		if _, err := parseObject([]byte(text)); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// TestCheckCharacters tries each character at each position of a string, because a Reader examines
// several bytes at a time.
func TestCheckCharacters(t *testing.T) {
	t.Parallel()
	const around = "éa~\x7f 0123456789"
	for c := range rune(0x100) {
		for before := range around {
			for after := range around {
				text := []byte(`{"a":"` + around[:before] + string(c) + around[:after] + `"}`)
				members, err := parseObject(text)
				if valid := json.Valid(text); (err == nil) != valid || valid && string(members[0].Value.Bytes()) != string(text[len(`{"a":`):len(text)-1]) {
					t.Fatalf("%q: %q, %v", text, members, err)
				}
				control := fmt.Sprintf("Cannot parse JSON: control character in a string at byte %d", len(`{"a":"`)+before)
				if c < ' ' && (err == nil || err.Error() != control) {
					t.Fatalf("%q: got error %v, want %s", text, err, control)
				}
			}
		}
	}
}

// FuzzCheck compares Check with package encoding/json, which accepts more.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"a":1,"b":[true,null,"x"],"c":{"d":-1.5e3}}`, `{"a":1,"a":2}`, `{"\ud83d\ude00":"\ud800"}`, `[1]`, `{"a":01}`, "{\"a\":\"\xff\"}", `{} x`, `{"a":"\u0061\/"}`,
		`{"a":{"\"{":[1 , -2.5e+3,{"b":"\\"},[ ],"]\\\"", false ] , "c":{}},"d":[[[]],{"e":[null]}, 7 ]}`,
		"{\"a\":[1\n,\t2\r,{\"b\":null\n,\"c\":true\t}\r],\"d\":{\"e\":0\r}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		members, err := parseObject(text)
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(text, &want)
		if err == nil && (wantErr != nil || want == nil) {
			t.Fatalf("%q is accepted, but: %v", text, wantErr)
		}
		if err != nil {
			if wantErr == nil && want != nil && utf8.Valid(text) && !knownStrictness(err) {
				t.Fatalf("%q is refused: %v", text, err)
			}
			return
		}
		if len(members) != len(want) {
			t.Fatalf("%q: %d members, want %d", text, len(members), len(want))
		}
		for _, m := range members {
			if string(want[string(m.Name)]) != string(m.Value.Bytes()) {
				t.Fatalf("%q: member %q is %q, want %q", text, m.Name, m.Value.Bytes(), want[string(m.Name)])
			}
			checkReread(t, m.Value.Bytes())
		}
	})
}

// checkReread fails unless a Reader of checked text returns the same value as package
// encoding/json.
func checkReread(t *testing.T, value []byte) {
	t.Helper()
	switch value[0] {
	case '{':
		members := Checked{value}.AppendMembers(nil)
		var want map[string]json.RawMessage
		if err := json.Unmarshal(value, &want); err != nil || len(members) != len(want) {
			t.Fatalf("%q: %d members, want %d: %v", value, len(members), len(want), err)
		}
		for _, m := range members {
			if string(want[string(m.Name)]) != string(m.Value.Bytes()) {
				t.Fatalf("%q: member %q is %q, want %q", value, m.Name, m.Value.Bytes(), want[string(m.Name)])
			}
			checkReread(t, m.Value.Bytes())
		}
	case '[':
		var want []json.RawMessage
		elements := slices.Collect(Checked{value}.Elements())
		if err := json.Unmarshal(value, &want); err != nil || len(elements) != len(want) {
			t.Fatalf("%q: %d elements, want %d: %v", value, len(elements), len(want), err)
		}
		for i, element := range elements {
			if string(want[i]) != string(element.Bytes()) {
				t.Fatalf("%q: element %d is %q, want %q", value, i, element.Bytes(), want[i])
			}
			checkReread(t, element.Bytes())
		}
	}
}

// knownStrictness reports whether err comes from a rule that package encoding/json lacks.
func knownStrictness(err error) bool {
	for _, rule := range []string{"duplicate key", "lone surrogate", "nested too deeply"} {
		if strings.Contains(err.Error(), rule) {
			return true
		}
	}
	return false
}

// Members are counted in an object and in the objects around it, not in the whole body.
func TestCheckBoundsMembers(t *testing.T) {
	t.Parallel()
	object := func(members int, last string) string {
		var b strings.Builder
		b.WriteString("{")
		for i := range members {
			fmt.Fprintf(&b, `"%d":0,`, i)
		}
		return b.String() + `"last":` + last + `}`
	}
	half := checkKeysMax / 2
	for _, row := range []struct {
		name, text string
		fails      bool
	}{
		{"as many as may be", object(checkKeysMax-1, "0"), false},
		{"one more", object(checkKeysMax, "0"), true},
		{"half in half", object(half-1, object(half-1, "0")), false},
		{"half in half, and one more", object(half-1, object(half, "0")), true},
		{"half beside half", object(2, `[`+object(half, "0")+`,`+object(half, "0")+`,`+object(half, "0")+`]`), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, err := parseObject([]byte(row.text)); (err != nil) != row.fails {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// An error must not call text a number if it is not JSON at all.
func TestTypeOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`: "an array", `"a"`: "a string", `true`: "a boolean", `false`: "a boolean", `null`: "null", `0`: "a number", `-1`: "a number", `{`: "an object",
		`hello`: "text that is no JSON", `<xml/>`: "text that is no JSON", `name=t`: "text that is no JSON", "\ufeff{}": "text that is no JSON",
		`table`: "text that is no JSON", ``: "text that is no JSON",
	} {
		if got := TypeOf([]byte(text)).String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// parseObject parses text, an object, and returns its members.
func parseObject(text []byte) ([]Member, error) {
	checked, err := Check(text)
	if err == nil && checked.Type() != Object {
		err = errors.New("it is no object")
	}
	return checked.AppendMembers(nil), err
}
