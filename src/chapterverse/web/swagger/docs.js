"use strict";
// No validator: it is a service of somebody else, who would learn the address of this server.
SwaggerUIBundle({ url: "openapi.json", dom_id: "#api", validatorUrl: null, deepLinking: true });
