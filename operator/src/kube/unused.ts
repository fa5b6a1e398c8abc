// Stands in for what the reader of kubeconfigs imports of the generated API and of undici; see `kubeConfig` in kubeconfig.ts. Nothing
// that we ask of it comes here.

function unused(): never {
  throw new Error('Requests are sent by transport.ts; @kubernetes/client-node reads the kubeconfig and nothing else.')
}

export const createConfiguration = unused
export { unused as Agent, unused as ProxyAgent, unused as ServerConfiguration }
