"""The server of book/plug.md under Flower's own client manager; runs in an environment with Flower, in an empty folder, and prints one JSON object."""

import json
import sys

import numpy as np
from flwr.common import ndarrays_to_parameters
from flwr.server.client_manager import SimpleClientManager
from flwr.server.client_proxy import ClientProxy


class Client(ClientProxy):
    """A client that is never asked anything."""

    def get_properties(self, *_, **__):
        raise NotImplementedError

    get_parameters = fit = evaluate = reconnect = get_properties


names = {}
exec(compile(sys.argv[1], "book/plug.md", "exec"), names)
strategy = names["strategy"]
strategy.clients, strategy.epsilon, strategy.strategy.min_available_clients = 200, 6.0, 200
manager = SimpleClientManager()
for number in range(200):
    manager.register(Client(str(number)))
weights = ndarrays_to_parameters([np.zeros(3)])
asked = [len(strategy.configure_fit(number, weights, manager)) for number in range(1, 21)]
print(json.dumps({"asked": asked, "entries": len(json.load(open("ledger.json"))["entries"])}))
