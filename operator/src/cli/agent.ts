// The process of the agent that `penstock run` starts.

import '@penstock/agent/main'
