package adls

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

const (
	// keyDuration is the requested lifetime of a user delegation key. Azure's limit is 7 days. If
	// an administrator revokes the key, its signatures are invalid at once. This package still uses
	// it until it expires.
	keyDuration = 24 * time.Hour
	// keyMargin is how far in the past a key's validity begins. It allows for differences between
	// clocks, because Azure refuses a key that begins in the future.
	keyMargin = 15 * time.Minute
	// keyBytesMax is the maximum size of Azure's answer with a key.
	keyBytesMax = 64 << 10
	// storageScope is the scope of a token for Azure Storage.
	storageScope = "https://storage.azure.com/.default"
)

// delegationKeys keeps the user delegation key of an account. The SDK can request a key, but does
// not return it. It is safe for concurrent use.
type delegationKeys struct {
	endpoint string // URL of the account's blob service
	pipeline runtime.Pipeline
	now      func() time.Time

	// asking has a buffer of one: one caller requests a key while the others wait.
	asking chan struct{}
	// mu guards the fields below. While mu is held, no lock is taken and no I/O is done.
	mu   sync.Mutex
	kept delegationKey
}

func newDelegationKeys(endpoint string, identity azcore.TokenCredential, core azcore.ClientOptions,
	now func() time.Time,
) *delegationKeys {
	pipeline := runtime.NewPipeline("moorage", "", runtime.PipelineOptions{PerRetry: tokenPolicies(identity)}, &core)
	return &delegationKeys{endpoint: endpoint, pipeline: pipeline, now: now, asking: make(chan struct{}, 1)}
}

// get returns a key that is valid at least until the given time, which is at most keyDuration from
// now. get replaces a key after half of its lifetime, so that credentials rarely expire early
// because of their key.
func (k *delegationKeys) get(ctx context.Context, until time.Time) (delegationKey, error) {
	if key, ok := k.usable(until); ok {
		return key, nil
	}
	select {
	case k.asking <- struct{}{}:
		defer func() { <-k.asking }()
	case <-ctx.Done():
		return delegationKey{}, context.Cause(ctx)
	}
	if key, ok := k.usable(until); ok { // another caller has just requested a key
		return key, nil
	}
	key, err := k.ask(ctx)
	if err != nil {
		return delegationKey{}, err
	}
	if key.Expiry.Before(until) || key.Value == "" || key.ObjectID == "" || key.TenantID == "" {
		return delegationKey{}, fmt.Errorf("Azure returned another user delegation key than the requested one")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = key
	return key, nil
}

// usable returns the cached key. It reports whether the key may sign a credential that expires at
// the given time.
func (k *delegationKeys) usable(until time.Time) (delegationKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := k.kept.Expiry.Sub(k.now())
	return k.kept, left > keyDuration/2 && !k.kept.Expiry.Before(until)
}

// keyInfo is the body of the request for a key.
type keyInfo struct {
	XMLName xml.Name `xml:"KeyInfo"`
	Start   string
	Expiry  string
}

// ask requests a key from Azure.
func (k *delegationKeys) ask(ctx context.Context) (key delegationKey, err error) {
	request, err := runtime.NewRequest(ctx, http.MethodPost, k.endpoint+"/?restype=service&comp=userdelegationkey")
	if err != nil {
		return key, err
	}
	request.Raw().Header[headerVersion] = []string{serviceVersion}
	now := k.now().UTC()
	info := keyInfo{Start: now.Add(-keyMargin).Format(sasTime), Expiry: now.Add(keyDuration).Format(sasTime)}
	if err := runtime.MarshalAsXML(request, info); err != nil {
		return key, err
	}
	answer, err := k.pipeline.Do(request)
	if err != nil {
		return key, shorten(err)
	}
	if answer.StatusCode != http.StatusOK {
		return key, shorten(runtime.NewResponseError(answer))
	}
	body, err := runtime.Payload(answer)
	if err != nil {
		return key, err
	}
	if len(body) > keyBytesMax || xml.Unmarshal(body, &key) != nil {
		return delegationKey{}, fmt.Errorf("Azure's response is not a user delegation key")
	}
	return key, nil
}
