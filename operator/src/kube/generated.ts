// What reading a kubeconfig needs of the generated API of @kubernetes/client-node; see `kubeConfig` in connection.ts.

export { createConfiguration } from '@kubernetes/client-node/dist/gen/configuration.js'
export { ServerConfiguration } from '@kubernetes/client-node/dist/gen/servers.js'
