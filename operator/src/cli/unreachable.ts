// The remedy where no API server answers. This file loads nothing, because every command may need it.

export const unreachableHelp =
  'Is the cluster running, and the context the right one? `kubectl config current-context` shows it; --context and --kubeconfig choose another.'
