package identity_test

import (
	"fmt"
	"net/http/httptest"
	"time"

	"moorage"
	"moorage/identity"
)

// A server authenticates each request before it does anything else with the request.
func ExampleAuthenticator() {
	corp, err := identity.ParseIssuer("corp=https://idp.example/realms/lake,audience=moorage")
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := identity.New(identity.Config{Issuers: []identity.IssuerConfig{corp}, FetchTimeout: 5 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	caller, err := a.Authenticate(httptest.NewRequest("GET", "/v1/config", nil))
	fmt.Printf("%q %v %s\n", caller.Name, moorage.KindOf(err), moorage.MessageOf(err))
	// Output: "" not authorized Authentication required: the request has no credentials
}
