package client

// Labels are the labels of a table or view, which engines get with each load.
type Labels struct {
	ObjectLabels map[string]string `json:"object-labels"`
	Fields       []FieldLabels     `json:"fields"` // ordered by id
}

// FieldLabels are the labels of one field.
type FieldLabels struct {
	FieldID int               `json:"field-id"`
	Labels  map[string]string `json:"labels"`
}
