package s3

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"moorage/storage"
)

func places(t *testing.T, spelled ...string) (locations []storage.Location) {
	t.Helper()
	for _, each := range spelled {
		parsed, err := storage.Parse(each)
		if err != nil {
			t.Fatal(err)
		}
		locations = append(locations, parsed)
	}
	return locations
}

// TestPolicies compares whole policies, byte for byte.
func TestPolicies(t *testing.T) {
	t.Parallel()
	amazon := policyTerms{partition: "aws", dialect: DialectAWS, protect: true}
	with := func(change func(*policyTerms)) policyTerms {
		terms := amazon
		change(&terms)
		return terms
	}
	const location = `{"Effect":"Allow","Action":"s3:GetBucketLocation","Resource":"arn:aws:s3:::lake"}`
	const reader = `{"Version":"2012-10-17","Statement":[` +
		`{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::lake/wh/tab/*"},` +
		`{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake","Condition":{"StringLike":{"s3:prefix":"wh/tab/*"}}},` +
		location
	const writes = `["s3:GetObject","s3:PutObject","s3:DeleteObject","s3:AbortMultipartUpload","s3:ListMultipartUploadParts"]`
	const protect = `,{"Effect":"Deny","Action":["s3:PutObject","s3:DeleteObject"],` +
		`"Resource":"arn:aws:s3:::lake/wh/tab/*.metadata.json"}`
	const key = "arn:aws:kms:eu-west-1:123456789012:key/5a"
	writer := strings.Replace(reader, `"s3:GetObject"`, writes, 1)
	for _, tt := range []struct {
		name      string
		terms     policyTerms
		locations []string
		want      string
	}{
		{"read", amazon, []string{"s3://lake/wh/tab"}, reader + `]}`},
		{"write", with(func(p *policyTerms) { p.write = true }), []string{"s3a://lake/wh/tab/"}, writer + protect + `]}`},
		{"write, open metadata", with(func(p *policyTerms) { p.write, p.protect = true, false }),
			[]string{"s3://lake/wh/tab"}, writer + `]}`},
		{"read with a key", with(func(p *policyTerms) { p.kmsKey = key }), []string{"s3://lake/wh/tab"},
			reader + `,{"Effect":"Allow","Action":"kms:Decrypt","Resource":"` + key + `"}]}`},
		{"write with a key", with(func(p *policyTerms) { p.write, p.kmsKey = true, key }), []string{"s3://lake/wh/tab"},
			writer + protect + `,{"Effect":"Allow","Action":["kms:Decrypt","kms:GenerateDataKey"],"Resource":"` + key + `"}]}`},
		{"other partition", with(func(p *policyTerms) { p.partition = "aws-cn" }), []string{"s3://lake/wh/tab"},
			strings.ReplaceAll(reader, "arn:aws:", "arn:aws-cn:") + `]}`},
		{"other dialect", with(func(p *policyTerms) { p.dialect = DialectMinIO }), []string{"s3://lake/wh/tab"},
			reader + `,{"Effect":"Deny","Action":"s3:*","Resource":["arn:aws:s3:::lake/*/../*","arn:aws:s3:::lake/*/./*",` +
				`"arn:aws:s3:::lake/*//*"]}]}`},
		{"patterns are spelled", amazon, []string{"s3://lake/a*${aws:username}$&<é\"\\"},
			`{"Version":"2012-10-17","Statement":[` +
				`{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::lake/a${*}${$}{aws:username}${$}&<é\"\\/*"},` +
				`{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake","Condition":` +
				`{"StringLike":{"s3:prefix":"a${*}${$}{aws:username}${$}&<é\"\\/*"}}},` + location + `]}`},
		{"a whole bucket", amazon, []string{"s3://lake"},
			strings.ReplaceAll(reader, "wh/tab/", "") + `]}`},
		{"two places, two buckets", amazon, []string{"s3://lake/wh/tab", "s3://pond/x", "s3://lake/old"},
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":` +
				`["arn:aws:s3:::lake/wh/tab/*","arn:aws:s3:::pond/x/*","arn:aws:s3:::lake/old/*"]},` +
				`{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake","Condition":` +
				`{"StringLike":{"s3:prefix":["wh/tab/*","old/*"]}}},` +
				`{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::pond","Condition":` +
				`{"StringLike":{"s3:prefix":"x/*"}}},` +
				`{"Effect":"Allow","Action":"s3:GetBucketLocation","Resource":["arn:aws:s3:::lake","arn:aws:s3:::pond"]}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, covered, err := policyFor(places(t, tt.locations...), tt.terms)
			if err != nil || got != tt.want || covered != len(tt.locations) {
				t.Errorf("%d locations, %v:\n%s\nwant\n%s", covered, err, got, tt.want)
			}
		})
	}
}

// TestPolicyRefuses requests policies that cannot be expressed.
func TestPolicyRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		dialect  Dialect
		location string
	}{
		{"beyond U+00FF", DialectAWS, "s3://lake/日本"},
		{"beyond U+00FF in the bucket", DialectAWS, "s3://日本/x"},
		{"too long", DialectAWS, "s3://lake/" + strings.Repeat("x", 1000)},
		{"star", DialectMinIO, "s3://lake/a*"}, {"dollar", DialectOther, "s3://lake/$a"},
		{"two slashes", DialectMinIO, "s3://lake/a//b"}, {"slash first", DialectOther, "s3://lake//b"},
		{"a pattern for a bucket", DialectAWS, "s3://*/x"}, {"a variable for a bucket", DialectAWS, "s3://${x}/x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			terms := policyTerms{partition: "aws", dialect: tt.dialect, protect: true, write: true}
			if text, _, err := policyFor(places(t, tt.location), terms); !errors.Is(err, storage.ErrUnscopable) {
				t.Errorf("%s, %v; want ErrUnscopable", text, err)
			}
		})
	}
	if _, _, err := policyFor(nil, policyTerms{}); !errors.Is(err, storage.ErrUnscopable) {
		t.Errorf("no locations: %v; want ErrUnscopable", err)
	}
}

// TestPolicyHasRoom adds locations until there is no room left, and locations that no policy can
// express.
func TestPolicyHasRoom(t *testing.T) {
	t.Parallel()
	terms := policyTerms{partition: "aws", dialect: DialectAWS, protect: true, write: true}
	var many []string
	for range 40 {
		many = append(many, "s3://lake/"+strings.Repeat("é", 60))
	}
	text, covered, err := policyFor(places(t, many...), terms)
	if err != nil || covered < 4 || covered >= len(many) || utf8.RuneCountInString(text) > 2048 {
		t.Errorf("%d of %d locations, %d characters, %v", covered, len(many), utf8.RuneCountInString(text), err)
	}
	next, _, err := policyFor(places(t, many[:covered]...), terms)
	if err != nil || next != text {
		t.Errorf("the same locations alone make another policy: %v", err)
	}
	_, covered, err = policyFor(places(t, "s3://lake/a", "s3://lake/日本", "s3://lake/b"), terms)
	if err != nil || covered != 1 {
		t.Errorf("%d locations, %v; want those before the one that cannot be spelled", covered, err)
	}
}

// FuzzPolicy reads a policy back. It allows exactly the keys that begin with the location and a
// slash.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{"wh/tab", "a*b", "$", "${*}", "é", "日本", `"`, "a//b", " "} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, key string, amazon bool) {
		location, err := storage.Parse("s3://lake/" + key)
		if err != nil {
			return
		}
		terms := policyTerms{partition: "aws", dialect: DialectOther, write: true}
		if amazon {
			terms.dialect = DialectAWS
		}
		spelled, err := terms.spell(location)
		if err != nil {
			return
		}
		// As Amazon reads it: ${c} is the character c, and * is a pattern.
		read := strings.NewReplacer("${*}", "*", "${?}", "?", "${$}", "$").Replace(spelled)
		bare := strings.NewReplacer("${*}", "", "${?}", "", "${$}", "").Replace(spelled)
		if strings.ContainsAny(bare, "*?$") {
			t.Errorf("%q is spelled %q, which is a pattern", key, spelled)
		}
		if want := location.Path[1:] + "/"; read != want && (location.Path != "/" || read != "") {
			t.Errorf("%q is spelled %q, which means %q", key, spelled, read)
		}
	})
}
