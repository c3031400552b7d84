package sealers_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"moorage/testkit/sealers"
)

// The double of AWS accepts requests signed by its user. It refuses requests that were signed by or
// for others, signed long ago, or changed after signing.
func TestAmazonVerifiesSignatures(t *testing.T) {
	t.Parallel()
	double := sealers.NewAmazon(t)
	body := `{"KeyId":"` + double.NewKey(t) + `"}`
	for _, tt := range []struct {
		name                    string
		secret, service, region string
		age                     time.Duration
		change                  func(*http.Request)
		want                    int
	}{
		{name: "right", want: http.StatusOK},
		{name: "another key", secret: "hunter2", want: http.StatusBadRequest},
		{name: "another service", service: "s3", want: http.StatusBadRequest},
		{name: "another region", region: "us-east-1", want: http.StatusBadRequest},
		{name: "long ago", age: time.Hour, want: http.StatusBadRequest},
		{name: "another action", change: func(r *http.Request) { r.Header.Set("X-Amz-Target", "TrentService.Decrypt") },
			want: http.StatusBadRequest},
		{name: "another body", change: func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(body, "arn", "ARN", 1)))
		}, want: http.StatusBadRequest},
		{name: "unsigned", change: func(r *http.Request) { r.Header.Del("Authorization") }, want: http.StatusBadRequest},
	} {
		request, err := http.NewRequest(http.MethodPost, double.URL+"/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-amz-json-1.1")
		request.Header.Set("X-Amz-Target", "TrentService.DescribeKey")
		sum := sha256.Sum256([]byte(body))
		credentials := aws.Credentials{AccessKeyID: sealers.AccessKeyID, SecretAccessKey: cmp.Or(tt.secret, sealers.SecretAccessKey)}
		if err := v4.NewSigner().SignHTTP(t.Context(), credentials, request, hex.EncodeToString(sum[:]),
			cmp.Or(tt.service, "kms"), cmp.Or(tt.region, sealers.Region), time.Now().Add(-tt.age)); err != nil {
			t.Fatal(err)
		}
		if tt.change != nil {
			tt.change(request)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != tt.want {
			t.Errorf("%s: %d %s, %v; want %d", tt.name, response.StatusCode, answer, err, tt.want)
		}
		if want := "InvalidSignatureException"; tt.want != http.StatusOK && !strings.Contains(string(answer), want) {
			t.Errorf("%s: %s, want %s", tt.name, answer, want)
		}
	}
}
